"""Polars: data frames read from and written to blobs."""
import polars

from harness import ACCOUNT, KEY, URL, check, equal, new_container, run

OPTIONS = {
    'azure_storage_account_name': ACCOUNT,
    'azure_storage_account_key': KEY,
    'azure_storage_endpoint': URL,
    'azure_allow_http': 'true',
}
FRAME = polars.DataFrame({'at': range(100_000), 'text': [f'ü{at % 97}' for at in range(100_000)]})


def folder():
    return f'az://{new_container().container_name}/a folder'


@check('writes and reads Parquet')
def parquet():
    uri = f'{folder()}/frame.parquet'
    FRAME.write_parquet(uri, storage_options=OPTIONS)
    assert polars.read_parquet(uri, storage_options=OPTIONS).equals(FRAME)


@check('scans the rows and columns that it needs')
def scan():
    uri = f'{folder()}/frame.parquet'
    FRAME.write_parquet(uri, storage_options=OPTIONS, row_group_size=1_000)
    found = polars.scan_parquet(uri, storage_options=OPTIONS).filter(polars.col('at') >= 99_990).select('at').collect()
    equal(found['at'].to_list(), list(range(99_990, 100_000)))


@check('scans many files by a pattern')
def pattern():
    here = folder()
    for at in range(5):
        FRAME.slice(at * 10, 10).write_parquet(f'{here}/part={at}/file.parquet', storage_options=OPTIONS)
    found = polars.scan_parquet(f'{here}/**/*.parquet', storage_options=OPTIONS, hive_partitioning=True)
    equal(found.filter(polars.col('part') == 3).select('at').collect()['at'].to_list(), list(range(30, 40)))


@check('writes partitions as a stream')
def sink():
    here = folder()
    partitions = polars.PartitionBy(here, key='part', include_key=True)
    frame = FRAME.with_columns(part=polars.col('at') % 4).lazy()
    frame.sink_parquet(partitions, storage_options=OPTIONS, mkdir=True)
    found = polars.scan_parquet(f'{here}/**/*.parquet', storage_options=OPTIONS)
    equal(found.select(polars.len()).collect().item(), 100_000)


@check('writes and reads CSV, JSON lines and IPC')
def formats():
    here = folder()
    for name in ['csv', 'ndjson', 'ipc']:
        uri = f'{here}/frame.{name}'
        getattr(FRAME.lazy(), f'sink_{name}')(uri, storage_options=OPTIONS)
        assert getattr(polars, f'scan_{name}')(uri, storage_options=OPTIONS).collect().equals(FRAME), name


@check('writes and reads a Delta table')
def delta():
    uri = f'az://{new_container().container_name}/delta'
    FRAME.write_delta(uri, storage_options=OPTIONS)
    FRAME.head(10).write_delta(uri, mode='append', storage_options=OPTIONS)
    equal(polars.scan_delta(uri, storage_options=OPTIONS).select(polars.len()).collect().item(), 100_010)


run()
