"""What everybody may, by the access level of a container."""
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient, PublicAccess

from harness import OPTIONS, URL, check, equal, new_container, refused, run

NO_ANONYMOUS_ACCESS = (401, 'NoAuthenticationInformation')


def anonymous_client(container):
    return ContainerClient(URL, container.container_name, **OPTIONS)


def filled(**options):
    container = new_container(**options)
    container.upload_blob('blob', b'bytes', metadata={'a': 'b'})
    return container


@check('reads nothing of a private container')
def private():
    guest = anonymous_client(filled())
    refused(*NO_ANONYMOUS_ACCESS, guest.get_blob_client('blob').download_blob)
    refused(*NO_ANONYMOUS_ACCESS, lambda: list(guest.list_blobs()))
    refused(*NO_ANONYMOUS_ACCESS, lambda: guest.upload_blob('new', b'x'))
    refused(*NO_ANONYMOUS_ACCESS, lambda: list(BlobServiceClient(URL, **OPTIONS).list_containers()))


@check('reads blobs, but no list, at the level of blobs')
def blob_level():
    container = filled(public_access=PublicAccess.Blob)
    equal(container.get_container_properties().public_access, 'blob')
    guest = anonymous_client(container)
    equal(guest.download_blob('blob').readall(), b'bytes')
    equal(guest.get_blob_client('blob').get_blob_properties().metadata, {'a': 'b'})
    refused(*NO_ANONYMOUS_ACCESS, lambda: list(guest.list_blobs()))
    refused(*NO_ANONYMOUS_ACCESS, lambda: guest.upload_blob('new', b'x'))


@check('reads blobs and their list at the level of containers')
def container_level():
    container = filled(public_access=PublicAccess.Container)
    guest = anonymous_client(container)
    equal([each.name for each in guest.list_blobs()], ['blob'])
    equal(guest.download_blob('blob').readall(), b'bytes')
    equal(guest.get_container_properties().public_access, 'container')
    refused(*NO_ANONYMOUS_ACCESS, lambda: guest.delete_blob('blob'))
    refused(404, 'BlobNotFound', lambda: guest.download_blob('absent'))


@check('feels a change of the level at once')
def changes():
    container = filled()
    guest = BlobClient.from_blob_url(container.get_blob_client('blob').url, **OPTIONS)
    refused(*NO_ANONYMOUS_ACCESS, guest.download_blob)
    container.set_container_access_policy({}, public_access=PublicAccess.Blob)
    equal(guest.download_blob().readall(), b'bytes')
    container.set_container_access_policy({})
    refused(*NO_ANONYMOUS_ACCESS, guest.download_blob)


run()
