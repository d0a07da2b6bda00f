"""Opens files with impacket as the lines of standard input ask, and holds them: name, access, share mode, create options, in hexadecimal.
A line `close NAME` closes the file again. Each line is answered by a line: ok, or the status."""
import sys

from impacket.smbconnection import SessionError, SMBConnection

port, user, password, share = sys.argv[1:]
connection = SMBConnection('127.0.0.1', '127.0.0.1', sess_port=int(port))
connection.login(user, password)
tree = connection.connectTree(share)
files = {}
for line in sys.stdin:
    words = line.split()
    try:
        if words[0] == 'close':
            connection.closeFile(tree, files.pop(words[1]))
        else:
            name, access, share_mode, options = words[0], *(int(word, 16) for word in words[1:])
            files[name] = connection.openFile(
                tree, name, desiredAccess=access, shareMode=share_mode, creationOption=options, creationDisposition=3)
        print('ok', flush=True)
    except SessionError as error:
        print(error.getErrorString()[0], flush=True)
