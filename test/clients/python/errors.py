import urllib.error
import urllib.request

from azure.core import MatchConditions
from azure.core.exceptions import ClientAuthenticationError, ResourceExistsError, ResourceModifiedError
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobClient

from harness import URL, check, equal, new_container, refused, run, service


def raised(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f'no {kind.__name__}')


@check('become the exceptions of the SDK')
def kinds():
    container = new_container()
    blob = container.get_blob_client('blob')
    raised(ResourceNotFoundError, blob.download_blob)
    blob.upload_blob(b'x')
    raised(ResourceExistsError, lambda: blob.upload_blob(b'x'))
    etag = {'etag': '"0x8D0000000000000"', 'match_condition': MatchConditions.IfNotModified}
    raised(ResourceModifiedError, lambda: blob.upload_blob(b'y', overwrite=True, **etag))
    wrong_key = BlobClient.from_blob_url(blob.url, credential='AAAA', retry_total=0)
    raised(ClientAuthenticationError, wrong_key.download_blob)


@check('carry the request id and say what is wrong')
def messages():
    error = refused(404, 'ContainerNotFound', service.get_container_client('absent').get_container_properties)
    assert error.response.headers['x-ms-request-id']
    error = refused(404, 'ContainerNotFound', lambda: list(service.get_container_client('absent').list_blobs()))
    equal(str(error.error_code.value if hasattr(error.error_code, 'value') else error.error_code), 'ContainerNotFound')
    assert 'The specified container does not exist.' in error.message, error.message
    assert error.response.headers['x-ms-request-id'] in error.message, error.message


@check('refuse names, numbers and ids that no server takes')
def bad_input():
    refused(400, 'InvalidResourceName', service.get_container_client('Upper').create_container)
    refused(400, 'OutOfRangeInput', service.get_container_client('x' * 64).create_container)
    blob = new_container().get_blob_client('blob')
    blob.stage_block('YWJj', b'x')
    refused(400, 'InvalidBlobOrBlock', lambda: blob.stage_block('YWJjZA==', b'x'))
    blob.upload_blob(b'x')
    refused(400, 'InvalidHeaderValue', lambda: blob.acquire_lease(lease_duration=5))
    refused(400, 'EmptyMetadataKey', lambda: blob.set_blob_metadata({'': 'x'}))


@check('come without a signature, too')
def unsigned():
    try:
        urllib.request.urlopen(f'{URL}/?comp=list')
    except urllib.error.HTTPError as error:
        # Requests without a version are answered as those of the old ones were.
        equal((error.code, error.headers['x-ms-error-code']), (404, 'ResourceNotFound'))
        return
    raise AssertionError('accepted')


run()
