"""failing-disk.py FOLDER FILE SWITCH: shows FILE as FOLDER/disk. Writes to it fail with EIO while SWITCH exists.

A loop device on FOLDER/disk is a disk whose writes fail, and the kernel treats it as one: a sync reports the error,
the pages count as clean afterwards, and the next sync succeeds.
"""
import errno
import os
import stat
import sys

import fusepy as fuse


class FailingDisk(fuse.Operations):
    def __init__(self, file, switch):
        self.file = os.open(file, os.O_RDWR)
        self.switch = switch

    def getattr(self, path, fh=None):
        if path == '/':
            return {'st_mode': stat.S_IFDIR | 0o755, 'st_nlink': 2}
        if path == '/disk':
            size = os.fstat(self.file).st_size
            return {'st_mode': stat.S_IFREG | 0o600, 'st_nlink': 1, 'st_size': size}
        raise fuse.FuseOSError(errno.ENOENT)

    def read(self, path, size, offset, fh):
        return os.pread(self.file, size, offset)

    def write(self, path, data, offset, fh):
        if os.path.exists(self.switch):
            raise fuse.FuseOSError(errno.EIO)
        return os.pwrite(self.file, data, offset)

    def fsync(self, path, datasync, fh):
        return 0


if __name__ == '__main__':
    folder, file, switch = sys.argv[1:]
    # Without direct I/O the kernel would keep the writes to itself, and answer for the disk.
    fuse.FUSE(FailingDisk(file, switch), folder, foreground=True, direct_io=True, big_writes=True)
