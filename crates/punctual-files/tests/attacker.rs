//! Files created by root next to an unprivileged attacker, who may write the same directory.

mod support;

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::Path;

use punctual_files::{Directory, NewFile, Output, Owned, check, unnamed, write};
use support::{Scratch, attack, is_root, mode};

#[test]
fn creates_files_readable_only_by_owner() {
    let scratch = Scratch::shared();
    let old = rustix::process::umask(rustix::fs::Mode::empty());
    write(&scratch.join("new"), b"x").unwrap();
    fs::write(scratch.join("old"), "y").unwrap();
    write(&scratch.join("old"), b"x").unwrap();
    let directory = Directory::create(&scratch.join("directory")).unwrap();
    directory.write(Path::new("a/b"), b"x").unwrap();
    directory.create_file(Path::new("c")).unwrap();
    rustix::process::umask(old);
    let modes = ["new", "old", "directory/a/b", "directory/c"].map(|name| mode(&scratch.join(name)).unwrap());
    assert_eq!(modes, [0o600; 4]);
    assert_eq!(mode(&scratch.join("directory/a")).unwrap(), 0o700);
}

#[test]
fn shows_no_incomplete_file() {
    let scratch = Scratch::shared();
    let path = scratch.join("file");
    fs::write(&path, "old").unwrap();
    let mut file = NewFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    let mut file = NewFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn replaces_links_without_following() {
    let scratch = Scratch::shared();
    let victim = scratch.join("victim");
    fs::write(&victim, "secret").unwrap();
    let link = scratch.join("link");
    match is_root() {
        true => attack(scratch.path(), "ln -s victim link; ln -s nowhere dangling"),
        false => {
            symlink("victim", &link).unwrap();
            symlink("nowhere", scratch.join("dangling")).unwrap();
        }
    }
    for name in ["link", "dangling"] {
        write(&scratch.join(name), b"result").unwrap();
        assert!(fs::symlink_metadata(scratch.join(name)).unwrap().is_file());
    }
    assert_eq!(fs::read(&victim).unwrap(), b"secret");
    assert!(!scratch.join("nowhere").exists());
}

#[test]
fn follows_only_links_of_caller_to_directories() {
    let scratch = Scratch::shared();
    fs::create_dir(scratch.join("real")).unwrap();
    symlink("real", scratch.join("own")).unwrap();
    write(&scratch.join("own/../own/file"), b"x").unwrap();
    assert!(scratch.join("real/file").exists());
    if is_root() {
        attack(scratch.path(), "ln -s real foreign");
        let error = write(&scratch.join("foreign/file"), b"y").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("`foreign` is a symbolic link of user 65534"), "{error}");
        assert_eq!(fs::read(scratch.join("real/file")).unwrap(), b"x");
    }
}

#[test]
fn rejects_cyclic_links() {
    let scratch = Scratch::shared();
    symlink("loop", scratch.join("loop")).unwrap();
    assert!(write(&scratch.join("loop/file"), b"x").is_err());
}

#[test]
fn waits_for_no_fifo_of_another_user() {
    let scratch = Scratch::shared();
    if is_root() {
        attack(scratch.path(), "mkfifo result");
        let error = Output::open(&scratch.join("result")).unwrap_err();
        assert!(error.to_string().contains("a FIFO of user 65534"), "{error}");
        assert!(check(&scratch.join("result")).is_err());
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, scratch.join("own"), rustix::fs::Mode::RWXU).unwrap();
    check(&scratch.join("own")).unwrap();
    assert!(NewFile::create(&scratch.join("own")).is_err());
}

#[test]
fn writes_to_devices_and_open_descriptors_without_replacing_them() {
    let scratch = Scratch::shared();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let pipe = format!("/proc/self/fd/{}", writer.as_raw_fd());
    for path in ["/dev/null", &pipe] {
        let before = fs::metadata(path).unwrap();
        check(Path::new(path)).unwrap();
        write(Path::new(path), b"x").unwrap();
        assert!(NewFile::create(Path::new(path)).is_err(), "{path}");
        let after = fs::metadata(path).unwrap();
        assert_eq!((before.dev(), before.ino()), (after.dev(), after.ino()));
    }
    drop(writer);
    let mut written = Vec::new();
    reader.read_to_end(&mut written).unwrap();
    assert_eq!(written, b"x");
    assert!(NewFile::create(Path::new("/dev/stderr")).is_err());
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let file = fs::File::create(scratch.join("open")).unwrap();
    let named = format!("/proc/self/fd/{}", file.as_raw_fd());
    write(Path::new(&named), b"x").unwrap();
    assert_eq!(fs::read(scratch.join("open")).unwrap(), b"x");
    assert_eq!(NewFile::create(scratch.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
}

#[test]
fn resumes_only_own_incomplete_file() {
    let scratch = Scratch::shared();
    let path = scratch.join("file");
    let mut file = NewFile::create_named(&path, ".part").unwrap();
    file.write_all(b"half").unwrap();
    file.keep();
    assert_eq!(mode(&scratch.join("file.part")).unwrap(), 0o600);
    let mut file = NewFile::resume(&path, ".part").unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(b" and half").unwrap();
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"half and half");

    fs::write(scratch.join("victim"), "secret").unwrap();
    fs::hard_link(scratch.join("victim"), scratch.join("file.part")).unwrap();
    assert!(NewFile::resume(&path, ".part").is_err(), "the file has another name");
    drop(NewFile::create_named(&path, ".part").unwrap());
    symlink("victim", scratch.join("file.part")).unwrap();
    assert!(NewFile::resume(&path, ".part").is_err(), "it is a link");
    drop(NewFile::create_named(&path, ".part").unwrap());
    if is_root() {
        attack(scratch.path(), "echo false > file.part; chmod 600 file.part");
        assert!(NewFile::resume(&path, ".part").is_err(), "it belongs to the attacker");
    }
    assert_eq!(fs::read(scratch.join("victim")).unwrap(), b"secret");
}

#[test]
fn keeps_directory_when_name_is_reused() {
    let scratch = Scratch::shared();
    fs::create_dir(scratch.join("victim")).unwrap();
    fs::write(scratch.join("victim/file"), "secret").unwrap();
    let directory = Directory::create(&scratch.join("raw")).unwrap();
    directory.write(Path::new("file"), b"first").unwrap();
    let exchange = "mv raw stolen; ln -s victim raw";
    match is_root() {
        true => attack(scratch.path(), exchange),
        false => {
            fs::rename(scratch.join("raw"), scratch.join("stolen")).unwrap();
            symlink("victim", scratch.join("raw")).unwrap();
        }
    }
    directory.write(Path::new("file"), b"second").unwrap();
    directory.create_file(Path::new("per_cpu/cpu0/pages")).unwrap();
    assert_eq!(directory.read(Path::new("file")).unwrap(), b"second");
    assert!(directory.remove().is_err(), "the name is that of a link");
    assert_eq!(fs::read(scratch.join("victim/file")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(scratch.join("victim")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(scratch.join("stolen")).unwrap().count(), 0);
}

#[test]
fn uses_no_directory_of_another_user() {
    let scratch = Scratch::shared();
    fs::create_dir(scratch.join("open")).unwrap();
    fs::set_permissions(scratch.join("open"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert_eq!(Directory::open(&scratch.join("open")).unwrap_err().kind(), ErrorKind::PermissionDenied);
    fs::create_dir(scratch.join("real")).unwrap();
    symlink("real", scratch.join("link")).unwrap();
    assert!(Directory::open(&scratch.join("link")).is_err());
    assert_eq!(Directory::create(&scratch.join("link")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    if is_root() {
        attack(scratch.path(), "mkdir -m 700 foreign");
        assert_eq!(
            Directory::open(&scratch.join("foreign")).unwrap_err().kind(),
            ErrorKind::PermissionDenied
        );
    }
}

#[test]
fn removes_links_and_keeps_their_targets() {
    let scratch = Scratch::shared();
    fs::create_dir(scratch.join("victim")).unwrap();
    fs::write(scratch.join("victim/file"), "secret").unwrap();
    let directory = Directory::create(&scratch.join("raw")).unwrap();
    directory.write(Path::new("deep/er/file"), b"x").unwrap();
    symlink(scratch.join("victim"), scratch.join("raw/deep/link")).unwrap();
    directory.remove().unwrap();
    assert!(!scratch.join("raw").exists() && scratch.join("victim/file").exists());
}

#[test]
fn reads_regular_files_only() {
    let scratch = Scratch::shared();
    let directory = Directory::create(&scratch.join("raw")).unwrap();
    let fifo = scratch.join("raw/fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    symlink("/etc/passwd", scratch.join("raw/link")).unwrap();
    assert!(directory.read(Path::new("fifo")).is_err());
    assert!(directory.read(Path::new("link")).is_err());
}

#[test]
fn reads_no_file_above_limit() {
    let scratch = Scratch::shared();
    // Sparse: it costs the attacker nothing.
    fs::File::create(scratch.join("long")).unwrap().set_len((64 << 20) + 1).unwrap();
    let directory = Directory::open_foreign(scratch.path()).unwrap();
    assert_eq!(directory.read(Path::new("long")).unwrap_err().kind(), ErrorKind::FileTooLarge);
}

#[test]
fn unnamed_file_leaves_no_name() {
    let scratch = Scratch::shared();
    let mut file = unnamed(scratch.path()).unwrap();
    file.write_all(b"x").unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn finds_directories_of_dead_owners() {
    let scratch = Scratch::shared();
    let owned = Owned::create(scratch.path(), "test-").unwrap();
    let path = owned.path().to_owned();
    fs::create_dir(scratch.join("other")).unwrap();
    assert!(Owned::abandoned(scratch.path(), "test-").is_empty());
    drop(owned);
    if is_root() {
        attack(scratch.path(), "mkdir test-foreign");
    }
    let abandoned = Owned::abandoned(scratch.path(), "test-");
    assert_eq!(abandoned.iter().map(Owned::path).collect::<Vec<_>>(), [path.as_path()]);
    abandoned.into_iter().for_each(|owned| owned.remove().unwrap());
    assert!(!path.exists());
}
