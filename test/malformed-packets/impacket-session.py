"""A session of impacket: SMB1's negotiation first, then SMB 2.1, with its own order of commands."""
import sys

from impacket.smb3structs import FILE_SHARE_READ, SMB2_DIALECT_21
from impacket.smbconnection import SMBConnection

port, user, password, share = sys.argv[1:]
for dialect in (None, SMB2_DIALECT_21):
    connection = SMBConnection('127.0.0.1', '127.0.0.1', sess_port=int(port), preferredDialect=dialect)
    connection.login(user, password)
    tree = connection.connectTree(share)
    file = connection.createFile(tree, 'impacket.txt', shareMode=FILE_SHARE_READ)
    connection.writeFile(tree, file, b'text')
    connection.readFile(tree, file)
    connection.closeFile(tree, file)
    connection.listPath(share, '*')
    connection.deleteFile(share, 'impacket.txt')
    connection.logoff()
