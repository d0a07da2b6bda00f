import os

from azure.storage.fileshare import ShareServiceClient

from harness import CONNECTION_STRING, OPTIONS, check, equal, refused, run

shares = ShareServiceClient.from_connection_string(CONNECTION_STRING, **OPTIONS)
# The test has docs/plan open twice and docs once, for reading.
share = shares.get_share_client(os.environ['HOLDFAST_OPEN_SHARE'])
directory = share.get_directory_client('docs')
file = directory.get_file_client('plan')


def paths(handles):
    return sorted(handle.path for handle in handles)


@check('lists the handles on a file, and everything of them')
def lists():
    handles = list(file.list_handles())
    equal(paths(handles), ['docs/plan', 'docs/plan'])
    properties = file.get_file_properties()
    for handle in handles:
        equal([handle.client_ip, handle.session_id], ['192.0.2.7:50445', '9479483953728458157'])
        equal([handle.file_id, handle.parent_id], [properties.file_id, properties.parent_id])
        assert handle.open_time is not None


@check('lists the handles on a directory, and on all below it')
def lists_below():
    equal(paths(directory.list_handles()), ['docs'])
    equal(paths(directory.list_handles(recursive=True)), ['docs', 'docs/plan', 'docs/plan'])


@check('is refused a delete while a handle is open, and closes them')
def closes():
    refused(409, 'SharingViolation', file.delete_file)
    first, second = file.list_handles()
    equal(file.close_handle(first)['closed_handles_count'], 1)
    refused(409, 'SharingViolation', file.delete_file)
    (own,) = directory.list_handles()
    equal(directory.close_handle(own)['closed_handles_count'], 1)
    equal(file.close_handle(own.id)['closed_handles_count'], 0)
    equal(directory.close_all_handles(recursive=True)['closed_handles_count'], 1)
    equal(list(directory.list_handles(recursive=True)), [])
    file.delete_file()


@check('lists nothing in a snapshot, where nothing is open')
def in_a_snapshot():
    snapshot = share.create_snapshot()
    before = shares.get_share_client(share.share_name, snapshot=snapshot).get_directory_client('docs')
    equal(list(before.list_handles(recursive=True)), [])


run()
