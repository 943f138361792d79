//! Paths, resolved to descriptors without following the links of other users.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, openat, readlinkat};

/// The number of links that the kernel follows.
const MAX_LINKS: usize = 40;

/// The object that a path names, opened by `O_PATH`.
pub(crate) struct Found {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
    /// `true` if the path names an open descriptor, such as `/dev/stdout`, or another link that
    /// only the kernel can follow.
    pub(crate) is_open: bool,
}

impl Found {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

/// Returns the effective user.
pub(crate) fn caller() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns `true` if root or the caller owns an object.
pub(crate) fn is_trusted(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == caller()
}

/// Resolves a path.
///
/// # Errors
/// A component does not exist, cannot be searched, or is a link that belongs to neither root nor
/// the caller.
pub(crate) fn resolve(path: &Path) -> io::Result<Found> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let start = |absolute: bool| {
        rustix::fs::open(if absolute { "/" } else { "." }, flags | OFlags::DIRECTORY, Mode::empty())
    };
    let mut fd = start(path.is_absolute())?;
    let mut rest = components(path);
    let (mut links, mut is_open) = (0, false);
    while let Some(name) = rest.pop() {
        let next = openat(&fd, &name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        let stat = fstat(&next)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            (fd, is_open) = (next, false);
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        if !is_trusted(&stat) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "`{}` is a symbolic link of user {}, which is not followed; specify its target instead",
                    Path::new(&name).display(),
                    stat.st_uid
                ),
            ));
        }
        if fstatfs(&next)?.f_type == PROC_SUPER_MAGIC {
            // The text of such a link is only informative; the object may have no path at all.
            fd = openat(&fd, &name, flags, Mode::empty())?;
            is_open = true;
            continue;
        }
        let target = readlinkat(&next, c"", Vec::new())?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes())).to_owned();
        if target.is_absolute() {
            fd = start(true)?;
        }
        rest.extend(components(&target));
    }
    let stat = fstat(&fd)?;
    Ok(Found { fd, stat, is_open: is_open && FileType::from_raw_mode(stat.st_mode) != FileType::Directory })
}

/// Returns the components of a path, last first.
fn components(path: &Path) -> Vec<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// Resolves the parent directory of a path, and returns the last component.
pub(crate) fn parent(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
    let name = name
        .ok_or_else(|| io::Error::new(io::ErrorKind::IsADirectory, "the path does not end in a file name"))?;
    let found = resolve(path.parent().unwrap_or(Path::new("")))?;
    match found.kind() {
        FileType::Directory => Ok((found.fd, name.to_owned())),
        _ => Err(rustix::io::Errno::NOTDIR.into()),
    }
}
