"""adlfs: the file system of fsspec, which Dask, pandas and others use."""
import os
from urllib.request import urlopen

from adlfs import AzureBlobFileSystem

from harness import ACCOUNT, CONNECTION_STRING, KEY, URL, check, equal, new_container, run

files = AzureBlobFileSystem(account_name=ACCOUNT, connection_string=CONNECTION_STRING)
DATA = os.urandom(12 * 1024 * 1024)


@check('writes and reads')
def write_and_read():
    path = f'{new_container().container_name}/a b/ü+%25#😀'
    with files.open(path, 'wb', block_size=5 * 1024 * 1024) as file:
        file.write(DATA)
    equal(files.cat_file(path), DATA)
    equal(files.cat_file(path, start=100, end=200), DATA[100:200])
    with files.open(path, 'rb') as file:
        file.seek(11_000_000)
        equal(file.read(10), DATA[11_000_000:11_000_010])


@check('writes only what is absent')
def absent():
    path = f'{new_container().container_name}/file'
    files.pipe_file(path, b'1', mode='create')
    try:
        files.pipe_file(path, b'2', mode='create')
    except FileExistsError:
        return equal(files.cat_file(path), b'1')
    raise AssertionError('written twice')


@check('finds, lists and walks')
def listing():
    container = new_container().container_name
    names = ['one', 'folder/two', 'folder/below/three']
    files.pipe({f'{container}/{name}': name.encode() for name in names})
    equal(sorted(files.find(container)), sorted(f'{container}/{name}' for name in names))
    equal(sorted(each.rstrip('/') for each in files.ls(f'{container}/folder', detail=False)),
          [f'{container}/folder/below', f'{container}/folder/two'])
    equal(files.glob(f'{container}/**/three'), [f'{container}/folder/below/three'])
    equal([(len(folders), len(found)) for _, folders, found in files.walk(container)], [(1, 1), (1, 1), (0, 1)])
    equal((files.isdir(f'{container}/folder'), files.isfile(f'{container}/one')), (True, True))
    equal(files.info(f'{container}/one')['size'], 3)


@check('copies, moves and removes a tree')
def tree():
    container = new_container().container_name
    files.pipe({f'{container}/from/{at}': b'x' for at in range(300)})
    files.cp_file(f'{container}/from/1', f'{container}/copy')
    files.mv(f'{container}/copy', f'{container}/moved')
    equal(files.cat_file(f'{container}/moved'), b'x')
    files.rm(f'{container}/from', recursive=True)
    files.invalidate_cache()
    equal(files.find(container), [f'{container}/moved'])


@check('makes and removes containers')
def containers():
    name = new_container().container_name
    files.mkdir(f'{name}-two')
    equal(files.exists(f'{name}-two'), True)
    files.rmdir(f'{name}-two')
    files.invalidate_cache()
    equal(f'{name}-two' in files.ls(''), False)


@check('keeps metadata')
def metadata():
    path = f'{new_container().container_name}/file'
    with files.open(path, 'wb', metadata={'by': 'adlfs'}) as file:
        file.write(b'x')
    equal(files.getxattr(path, 'by'), 'adlfs')


@check('signs an address')
def signature():
    signed = AzureBlobFileSystem(account_name=ACCOUNT, account_key=KEY, account_host=URL.split('//')[1], protocol='http')
    path = f'{new_container().container_name}/file'
    files.pipe_file(path, b'x')
    with urlopen(signed.sign(path).replace('https://', 'http://')) as answer:
        equal(answer.read(), b'x')


@check('appends')
def append():
    path = f'{new_container().container_name}/file'
    with files.open(path, 'ab') as file:
        file.write(b'one')
    with files.open(path, 'ab') as file:
        file.write(b'two')
    equal(files.cat_file(path), b'onetwo')


run()
