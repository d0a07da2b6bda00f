"""pyarrow: Arrow's own file system, on Microsoft's SDK for C++."""
import os
from urllib.parse import urlsplit

import pyarrow
import pyarrow.dataset
import pyarrow.parquet
from pyarrow.fs import AzureFileSystem, FileSelector, FileType

from harness import ACCOUNT, KEY, URL, check, equal, new_container, run

authority = urlsplit(URL).netloc
files = AzureFileSystem(
    account_name=ACCOUNT,
    account_key=KEY,
    blob_storage_authority=authority,
    dfs_storage_authority=authority,
    blob_storage_scheme='http',
    dfs_storage_scheme='http',
)
DATA = os.urandom(9 * 1024 * 1024)


def write(path, data):
    with files.open_output_stream(path) as stream:
        stream.write(data)


@check('writes and reads')
def write_and_read():
    path = f'{new_container().container_name}/a b/ü+%25'
    write(path, DATA)
    with files.open_input_file(path) as file:
        equal(file.size(), len(DATA))
        equal(file.read_at(100, 5_000_000), DATA[5_000_000:5_000_100])
        equal(file.read(), DATA)


@check('keeps metadata and content type')
def metadata():
    container = new_container()
    path = f'{container.container_name}/file'
    with files.open_output_stream(path, metadata={'Content-Type': 'text/x-arrow', 'by': 'arrow'}) as stream:
        stream.write(b'x')
    found = container.get_blob_client('file').get_blob_properties()
    equal((found.content_settings.content_type, found.metadata), ('text/x-arrow', {'by': 'arrow'}))


@check('tells files from folders')
def info():
    container = new_container().container_name
    write(f'{container}/folder/file', b'123')
    infos = files.get_file_info([container, f'{container}/folder', f'{container}/folder/file', f'{container}/none'])
    equal([each.type for each in infos], [FileType.Directory, FileType.Directory, FileType.File, FileType.NotFound])
    equal(infos[2].size, 3)


@check('lists folders')
def listing():
    container = new_container().container_name
    for name in ['one', 'folder/two', 'folder/below/three']:
        write(f'{container}/{name}', b'x')
    found = files.get_file_info(FileSelector(container, recursive=True))
    names = sorted(each.path.removeprefix(f'{container}/') for each in found)
    equal(names, ['folder', 'folder/below', 'folder/below/three', 'folder/two', 'one'])


@check('creates and deletes folders and containers')
def folders():
    container = new_container().container_name
    files.create_dir(f'{container}/folder/below', recursive=True)
    write(f'{container}/folder/file', b'x')
    files.delete_dir_contents(f'{container}/folder')
    equal(files.get_file_info(f'{container}/folder/file').type, FileType.NotFound)
    files.delete_dir(f'{container}/folder')
    equal(files.get_file_info(f'{container}/folder').type, FileType.NotFound)
    files.delete_dir(container)
    equal(files.get_file_info(container).type, FileType.NotFound)


@check('copies and deletes files')
def copies():
    container = new_container().container_name
    write(f'{container}/from', DATA[:1000])
    files.copy_file(f'{container}/from', f'{container}/to')
    files.delete_file(f'{container}/from')
    with files.open_input_file(f'{container}/to') as file:
        equal(file.read(), DATA[:1000])
    equal(files.get_file_info(f'{container}/from').type, FileType.NotFound)


@check('writes and reads a partitioned dataset, and overwrites it')
def dataset():
    base = f'{new_container().container_name}/dataset'
    table = pyarrow.table({'part': [at % 3 for at in range(300)], 'at': range(300)})
    for _ in range(2):
        pyarrow.dataset.write_dataset(
            table,
            base,
            filesystem=files,
            format='parquet',
            partitioning=pyarrow.dataset.partitioning(pyarrow.schema([('part', pyarrow.int64())]), flavor='hive'),
            existing_data_behavior='delete_matching',
        )
    found = pyarrow.dataset.dataset(base, filesystem=files, format='parquet', partitioning='hive')
    equal(found.count_rows(filter=pyarrow.dataset.field('part') == 2), 100)


run()
