"""Addresses with the account's name before the host, as Azure's own are."""
import socket
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

from azure.storage.blob import BlobClient, BlobServiceClient, generate_blob_sas

from harness import ACCOUNT, KEY, OPTIONS, URL, check, equal, new_container, run

parts = urlsplit(URL)
HOST_URL = f'{parts.scheme}://{ACCOUNT}.blob.localhost:{parts.port}'

resolve = socket.getaddrinfo


def resolve_localhost(host, *rest, **options):
    """Not every machine resolves names below localhost by itself; Python does not either."""
    return resolve('127.0.0.1' if str(host).endswith('.localhost') else host, *rest, **options)


socket.getaddrinfo = resolve_localhost


@check('reach the same blobs as path-style ones')
def same_blobs():
    service = BlobServiceClient(HOST_URL, credential={'account_name': ACCOUNT, 'account_key': KEY}, **OPTIONS)
    name = new_container().container_name
    blob = service.get_blob_client(name, 'folder/ü b+c')
    blob.upload_blob(b'bytes')
    equal(BlobClient(URL, name, 'folder/ü b+c', credential=KEY).download_blob().readall(), b'bytes')
    equal([each.name for each in service.get_container_client(name).list_blobs()], ['folder/ü b+c'])
    assert name in [each.name for each in service.list_containers()]
    copy = service.get_blob_client(name, 'copy')
    copy.start_copy_from_url(blob.url)
    equal(copy.download_blob().readall(), b'bytes')


@check('take shared access signatures')
def signatures():
    container = new_container()
    container.upload_blob('a b', b'bytes')
    expiry = datetime.now(timezone.utc) + timedelta(hours=1)
    sas = generate_blob_sas(ACCOUNT, container.container_name, 'a b', account_key=KEY, permission='r', expiry=expiry)
    # from_blob_url would look for the account in the path: it does so wherever the host has "localhost" in it.
    guest = BlobClient(HOST_URL, container.container_name, 'a b', credential=sas, **OPTIONS)
    equal(guest.download_blob().readall(), b'bytes')


run()
