"""delta-rs: tables whose log is decided by "create only if absent", written by several processes at once."""
import multiprocessing

import pyarrow
from deltalake import CommitProperties, DeltaTable, write_deltalake

from harness import ACCOUNT, KEY, URL, check, equal, new_container, run, service

WRITERS = 8
APPENDS = 5
OPTIONS = {
    'azure_storage_account_name': ACCOUNT,
    'azure_storage_account_key': KEY,
    'azure_storage_endpoint': URL,
    'azure_allow_http': 'true',
}


def rows(count, writer=0):
    return pyarrow.table({'writer': [writer] * count, 'at': list(range(count))})


def new_table():
    uri = f'az://{new_container().container_name}/table'
    write_deltalake(uri, rows(10), storage_options=OPTIONS)
    return uri


def open_table(uri):
    return DeltaTable(uri, storage_options=OPTIONS)


def append(uri, writer):
    for _ in range(APPENDS):
        patient = CommitProperties(max_commit_retries=100)
        write_deltalake(uri, rows(10, writer), mode='append', storage_options=OPTIONS, commit_properties=patient)


@check('creates a table and reads it')
def create():
    table = open_table(new_table())
    equal((table.version(), table.to_pyarrow_table().num_rows), (0, 10))


@check('loses no row of 8 concurrent writers')
def writers():
    uri = new_table()
    spawned = multiprocessing.get_context('spawn')
    processes = [spawned.Process(target=append, args=(uri, writer)) for writer in range(1, WRITERS + 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    equal([process.exitcode for process in processes], [0] * WRITERS)
    table = open_table(uri)
    equal(table.version(), WRITERS * APPENDS)
    equal(table.to_pyarrow_table().num_rows, 10 + WRITERS * APPENDS * 10)


@check('overwrites, and reads an earlier version')
def versions():
    uri = new_table()
    write_deltalake(uri, rows(3), mode='overwrite', storage_options=OPTIONS)
    table = open_table(uri)
    equal(table.to_pyarrow_table().num_rows, 3)
    table.load_as_version(0)
    equal(table.to_pyarrow_table().num_rows, 10)


@check('deletes, updates and merges rows')
def changes():
    uri = new_table()
    open_table(uri).delete('at < 3')
    open_table(uri).update(updates={'writer': '7'}, predicate='at = 5')
    merged = open_table(uri).merge(rows(12, 9), 's.at = t.at', source_alias='s', target_alias='t')
    merged.when_matched_update_all().when_not_matched_insert_all().execute()
    equal(sorted(open_table(uri).to_pyarrow_table()['writer'].to_pylist()), [9] * 12)


@check('makes a checkpoint, and compacts')
def compact():
    uri = new_table()
    append(uri, 1)
    open_table(uri).create_checkpoint()
    open_table(uri).optimize.compact()
    table = open_table(uri)
    equal((len(table.file_uris()), table.to_pyarrow_table().num_rows), (1, 10 + APPENDS * 10))


@check('vacuums what nothing refers to')
def vacuum():
    uri = new_table()
    append(uri, 1)
    write_deltalake(uri, rows(3), mode='overwrite', storage_options=OPTIONS)
    table = open_table(uri)
    removed = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    equal(len(removed), 1 + APPENDS)
    equal(open_table(uri).to_pyarrow_table().num_rows, 3)
    left = service.get_container_client(uri.split('/')[2]).list_blob_names()
    equal(len([name for name in left if name.endswith('.parquet')]), 1)


# The processes of the writers import this file.
if __name__ == '__main__':
    run()
