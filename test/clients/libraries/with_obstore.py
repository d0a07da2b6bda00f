"""obstore: the Rust crate object_store in Python."""
import os
from datetime import timedelta
from urllib.request import urlopen

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import AzureStore

from harness import ACCOUNT, KEY, URL, check, equal, new_container, run

ODD_NAMES = ['plain', 'a b/ü+%25#😀', "it's (odd) & more=?"]
DATA = os.urandom(12 * 1024 * 1024)


def store():
    options = {'account_name': ACCOUNT, 'account_key': KEY, 'endpoint': URL}
    return AzureStore(new_container().container_name, **options, client_options={'allow_http': True})


def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f'not refused with {kind.__name__}')


@check('puts and gets')
def put_and_get():
    here = store()
    for name in ODD_NAMES:
        obstore.put(here, name, DATA[:1000], attributes={'Content-Type': 'text/x-obstore'})
        answer = obstore.get(here, name)
        equal(answer.attributes['Content-Type'], 'text/x-obstore')
        equal(bytes(answer.bytes()), DATA[:1000])
        equal(bytes(obstore.get_range(here, name, start=10, end=20)), DATA[10:20])


@check('uploads in blocks')
def blocks():
    here = store()
    obstore.put(here, 'large', DATA, chunk_size=5 * 1024 * 1024, use_multipart=True)
    equal(bytes(obstore.get(here, 'large').bytes()), DATA)
    parts = obstore.get_ranges(here, 'large', starts=[0, 7_000_000], ends=[100, 7_000_100])
    equal([bytes(part) for part in parts], [DATA[:100], DATA[7_000_000:7_000_100]])


@check('creates once, and updates what is unchanged')
def conditions():
    here = store()
    first = {'e_tag': obstore.put(here, 'one', b'1', mode='create')['e_tag']}
    raises(AlreadyExistsError, lambda: obstore.put(here, 'one', b'2', mode='create'))
    obstore.put(here, 'one', b'2', mode=first)
    raises(PreconditionError, lambda: obstore.put(here, 'one', b'3', mode=first))


@check('lists from a name on, and by folder')
def listing():
    here = store()
    for at in range(20):
        obstore.put(here, f'folder/{at:02}', b'')
    obstore.put(here, 'top', b'')
    found = obstore.list(here, 'folder', offset='folder/14').collect()
    equal([each['path'] for each in found], [f'folder/{at}' for at in range(15, 20)])
    top = obstore.list_with_delimiter(here)
    equal((top['common_prefixes'], [each['path'] for each in top['objects']]), (['folder'], ['top']))


@check('copies and renames')
def copies():
    here = store()
    obstore.put(here, 'from', DATA[:1000])
    obstore.copy(here, 'from', 'to')
    raises(AlreadyExistsError, lambda: obstore.copy(here, 'from', 'to', overwrite=False))
    obstore.rename(here, 'to', 'renamed')
    equal([each['path'] for each in obstore.list(here).collect()], ['from', 'renamed'])


@check('deletes 300 at once')
def delete_many():
    here = store()
    names = [f'many/a b/ü+%25#{at}' for at in range(300)]
    for name in names:
        obstore.put(here, name, b'x')
    obstore.delete(here, names)
    equal(obstore.list(here).collect(), [])


@check('writes tags')
def tags():
    here = store()
    with obstore.open_writer(here, 'tagged', tags={'by': 'obstore'}) as writer:
        writer.write(b'x')
    equal(bytes(obstore.get(here, 'tagged').bytes()), b'x')


@check('signs an address')
def signature():
    here = store()
    obstore.put(here, 'signed', b'x')
    with urlopen(obstore.sign(here, 'GET', 'signed', timedelta(minutes=5))) as answer:
        equal(answer.read(), b'x')


run()
