"""OpenDAL: one interface for many stores."""
import os

import opendal

from harness import ACCOUNT, KEY, URL, check, equal, new_container, run

DATA = os.urandom(9 * 1024 * 1024)
NAMES = ['plain', 'a b/ü+%25#😀', "folder/it's (odd) & more=?"]


def operator():
    container = new_container().container_name
    return opendal.Operator('azblob', container=container, endpoint=URL, account_name=ACCOUNT, account_key=KEY, root='/')


def refused(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f'not refused with {kind.__name__}')


@check('writes, reads and shows')
def write_and_read():
    here = operator()
    here.check()
    for name in NAMES:
        here.write(name, DATA[:1000], content_type='text/x-opendal')
        equal(bytes(here.read(name)), DATA[:1000])
        found = here.stat(name)
        equal((found.content_length, found.content_type), (1000, 'text/x-opendal'))
    refused(opendal.exceptions.NotFound, lambda: here.read('none'))


@check('writes only what is absent, and reads only what is unchanged')
def conditions():
    here = operator()
    here.write('one', b'1', if_not_exists=True)
    refused(opendal.exceptions.ConditionNotMatch, lambda: here.write('one', b'2', if_not_exists=True))
    etag = here.stat('one').etag
    equal(bytes(here.read('one', if_match=etag)), b'1')
    refused(opendal.exceptions.ConditionNotMatch, lambda: here.read('one', if_none_match=etag))


@check('writes in blocks, and reads ranges')
def blocks():
    here = operator()
    here.write('large', DATA, chunk=4 * 1024 * 1024, concurrent=3)
    with here.open('large', 'rb') as file:
        file.seek(5_000_000)
        equal(bytes(file.read(100)), DATA[5_000_000:5_000_100])
    equal(bytes(here.read('large')), DATA)


@check('keeps metadata')
def metadata():
    here = operator()
    here.write('one', b'1', user_metadata={'by': 'opendal'})
    equal(here.stat('one').user_metadata, {'by': 'opendal'})


@check('lists, by folder and in all')
def listing():
    here = operator()
    for at in range(30):
        here.write(f'folder/{at:02}', b'')
    here.write('folder/below/file', b'')
    here.create_dir('made/')
    equal([each.path for each in here.list('/') if each.path != '/'], ['folder/', 'made/'])
    equal(len([each for each in here.scan('folder/') if not each.path.endswith('/')]), 31)


@check('copies and deletes')
def copies():
    here = operator()
    here.write('from', DATA[:1000])
    here.copy('from', 'a b/to ü')
    equal(bytes(here.read('a b/to ü')), DATA[:1000])
    here.delete('from')
    here.delete('from')
    equal(here.exists('from'), False)


@check('removes a folder with 300 blobs')
def remove_all():
    here = operator()
    for at in range(300):
        here.write(f'many/a b/ü+%25#{at}', b'x')
    here.remove_all('many/')
    equal([each.path for each in here.scan('/') if each.path != '/'], [])


@check('appends')
def append():
    here = operator()
    here.write('log', b'one', append=True)
    here.write('log', b'two', append=True)
    equal(bytes(here.read('log')), b'onetwo')


run()
