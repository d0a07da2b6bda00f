"""A session of Samba's Python library: files, directories, permissions, renames and deletions."""
import sys

from samba import NTSTATUSError, ntstatus
from samba.credentials import Credentials
from samba.dcerpc import security
from samba.param import LoadParm
from samba.samba3 import libsmb_samba_internal as libsmb
from samba.samba3 import param as s3param

FILE_CREATE = 2

user, password, share = sys.argv[1:]
settings = s3param.get_context()
settings.load_default()


def connect(key):
    credentials = Credentials()
    credentials.guess(LoadParm())
    credentials.set_username(user)
    credentials.set_password(key)
    return libsmb.Conn('127.0.0.1', share, settings, credentials)


def refusal(call):
    try:
        call()
    except NTSTATUSError as error:
        return error.args[0]
    return None


def names(folder):
    return sorted(entry['name'] for entry in connection.list(folder))


assert refusal(lambda: connect('d3Jvbmc=')) == ntstatus.NT_STATUS_LOGON_FAILURE
connection = connect(password)

connection.mkdir('folder')
connection.savefile('folder\\a.txt', b'some text')
assert connection.loadfile('folder\\A.TXT') == b'some text'
assert names('folder') == ['a.txt'], names('folder')

held = connection.create(
    'folder\\held.txt',
    DesiredAccess=security.SEC_FILE_WRITE_DATA,
    ShareAccess=0,
    CreateDisposition=FILE_CREATE,
)
connection.write(held, b'0123456789', 0)
assert refusal(lambda: connection.loadfile('folder\\held.txt')) == ntstatus.NT_STATUS_SHARING_VIOLATION
connection.close(held)
assert connection.loadfile('folder\\held.txt') == b'0123456789'

# By default the library asks for the list for audits, too.
shown = connection.get_acl('folder\\a.txt').as_sddl()
assert shown.startswith('O:SYG:SY'), shown
wanted = security.descriptor.from_sddl('O:BAG:BAD:P(A;;FA;;;SY)(A;;FR;;;BU)', security.dom_sid('S-1-5-21-1-2-3'))
parts = security.SECINFO_OWNER | security.SECINFO_GROUP | security.SECINFO_DACL
connection.set_acl('folder\\a.txt', wanted, parts)
assert connection.get_acl('folder\\a.txt', parts).as_sddl() == wanted.as_sddl()
connection.set_acl('folder\\a.txt', wanted)

connection.rename('folder\\a.txt', 'folder\\b.txt')
assert names('folder') == ['b.txt', 'held.txt'], names('folder')
assert refusal(lambda: connection.rename('folder\\b.txt', 'none\\b.txt')) == ntstatus.NT_STATUS_OBJECT_PATH_NOT_FOUND
assert refusal(lambda: connection.rmdir('folder')) == ntstatus.NT_STATUS_DIRECTORY_NOT_EMPTY
connection.unlink('folder\\b.txt')
assert refusal(lambda: connection.unlink('folder\\b.txt')) == ntstatus.NT_STATUS_OBJECT_NAME_NOT_FOUND

connection.mkdir('folder\\deeper')
connection.savefile('folder\\deeper\\c.txt', b'x' * 3_000_000)
assert connection.loadfile('folder\\deeper\\c.txt') == b'x' * 3_000_000
connection.deltree('folder')
assert not connection.chkpath('folder')
assert names('') == [], names('')
print('all is as it should be')
