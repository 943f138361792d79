//! A bootable kernel: extracted from Debian's package on first use, or built from its source, and
//! cached.
//!
//! A built kernel is in a directory named after the hash of its configuration and of the source's
//! version, so a changed configuration creates another. A directory is complete under its name, or
//! absent.

pub(crate) mod apt;
mod build;
pub(crate) mod debs;
pub(crate) mod modules;
pub(crate) mod package;
mod payload;

use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use fnv::FnvHasher;
use punctual_process::child::BoundedChild;
use xtask_support::Result;
use xtask_support::process::TOOL_LIMIT;

use crate::arch::Arch;
use crate::tools;
use crate::trouble::{Interrupt, about};
use crate::workdir::{self, Workdir, at};
use modules::BUILD_TREE;
use package::Flavour;

/// Modules of a kernel by purpose, each in the order of loading; some may be built in. A file with
/// the name of the purpose lists those that exist, after their dependencies.
const MODULES: [(Purpose, &[&str]); 4] = [
    (Purpose::Share, &["virtio_pci", "9pnet_virtio", "9p"]),
    (Purpose::Device, &["can_raw", "vcan"]),
    (Purpose::Spare, &["uio_pci_generic", "parport_pc", "ppdev"]),
    (Purpose::Network, &["virtio_net"]),
];

/// The purpose of modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The guest mounts the host directory.
    Share,
    /// Programs use devices; built into the kernels that the lab builds.
    Device,
    /// A case loads them if needed, since an interrupt can have only one driver.
    Spare,
    /// The network card, if the guest has one.
    Network,
}

impl Purpose {
    /// Returns the name of the file that lists the modules.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::Share => "modules.list",
            Self::Device => "drivers.list",
            Self::Spare => "spare.list",
            Self::Network => "network.list",
        }
    }
}

/// The parts of the package that are unpacked: every kernel has files in each.
const PARTS: [&str; 10] = [
    "*/vmlinuz-*",
    "*/kernel/fs/*",
    "*/kernel/net/*",
    "*/kernel/drivers/virtio/*",
    "*/kernel/drivers/net/can/*",
    "*/kernel/drivers/net/net_failover.ko*",
    "*/kernel/drivers/net/virtio_net.ko*",
    "*/kernel/drivers/char/*",
    "*/kernel/drivers/parport/*",
    "*/kernel/drivers/uio/*",
];

/// A cached kernel.
pub(crate) struct Kernel {
    directory: PathBuf,
    /// Its processor.
    pub(crate) arch: Arch,
    /// Its package.
    pub(crate) package: String,
}

impl Kernel {
    /// Returns the cached kernel of `flavour`, if any.
    pub(crate) fn cached(flavour: Flavour) -> Option<Self> {
        if !flavour.is_built() {
            return Self::open(kernels().join(flavour.name()), flavour);
        }
        // The hash shows whether it has the present configuration.
        let current = |kernel: &Self| {
            let version = kernel.package.rsplit(' ').next().unwrap_or_default();
            kernel.directory.ends_with(directory(flavour, version))
        };
        copies(flavour).into_iter().filter_map(|copy| Self::open(copy, flavour)).find(current)
    }

    fn open(directory: PathBuf, flavour: Flavour) -> Option<Self> {
        let package = fs::read_to_string(directory.join("package")).ok()?;
        if !flavour.is_built() {
            for purpose in [Purpose::Share, Purpose::Device, Purpose::Spare] {
                fs::metadata(directory.join(purpose.list())).ok()?;
            }
        }
        Some(Self { directory, arch: flavour.arch(), package: package.trim().to_owned() })
    }

    /// Returns the kernel of `flavour`, downloaded or built if it is not cached.
    pub(crate) fn get(flavour: Flavour, interrupt: &Interrupt) -> Result<Self> {
        match Self::cached(flavour) {
            Some(kernel) => Ok(kernel),
            None => Self::make(flavour, interrupt),
        }
    }

    /// The same, but rebuilt if the system's package lists have a newer source.
    pub(crate) fn newest(flavour: Flavour, interrupt: &Interrupt) -> Result<Self> {
        let Some(kernel) = Self::cached(flavour) else { return Self::make(flavour, interrupt) };
        if !flavour.is_built() {
            return Ok(kernel);
        }
        match apt::version(flavour) {
            Ok(Some(version)) if !kernel.package.ends_with(&format!(" {version}")) => {
                eprintln!(
                    "lab: {} was not built from the source that apt has now, {version}",
                    kernel.package
                );
                Self::make(flavour, interrupt)
            }
            // Without a network, or without lists, the cached kernel is the newest.
            _ => Ok(kernel),
        }
    }

    fn make(flavour: Flavour, interrupt: &Interrupt) -> Result<Self> {
        let begun = Instant::now();
        let work = Workdir::new()?;
        let ready = work.path().join("ready");
        let directory = if let Some(options) = flavour.options() {
            tools::require_build()?;
            let name = flavour.name();
            eprintln!(
                "lab: the kernel `{name}` is not built yet. Building needs {} MB of disk space and 15 minutes of CPU time, on all CPUs; \
                 Ctrl-C stops it",
                flavour.space()
            );
            let (package, deb) = apt::download(flavour, work.path(), interrupt)?;
            let version = apt::version_in(&deb)?;
            let title = format!("{name} of {package} {version}");
            build::build(&options, &deb, work.path(), &ready, interrupt)
                .map_err(|error| about(&format!("cannot build {title}"), error))?;
            // Last: without it the directory does not count as complete.
            fs::write(ready.join("package"), title)?;
            kernels().join(directory(flavour, &version))
        } else {
            tools::require(["dpkg-deb", "tar", "xz", "zstd"])?;
            let (package, deb) = apt::download(flavour, work.path(), interrupt)?;
            eprintln!("lab: unpacking {package}");
            prepare(&deb, work.path(), &ready, interrupt)
                .map_err(|error| about(&format!("cannot unpack {package}"), error))?;
            if let Some(packages) = flavour.headers(&package) {
                modules::fetch_headers(&packages, work.path(), &ready, interrupt)?;
            }
            // Last: without it the directory does not count as complete.
            fs::write(ready.join("package"), package)?;
            kernels().join(flavour.name())
        };

        let older = copies(flavour);
        fs::create_dir_all(kernels())?;
        // An existing directory that is not a complete kernel is from a lab that cached other
        // files.
        if directory.exists() && Self::cached(flavour).is_none() {
            fs::remove_dir_all(&directory).map_err(at(&directory))?;
        }
        if let Err(error) = fs::rename(&ready, &directory)
            && Self::cached(flavour).is_none()
        {
            return Err(format!("{}: {error}; delete it and try again", directory.display()).into());
        }
        for other in older.into_iter().filter(|other| *other != directory) {
            eprintln!("lab: removing {}, of another source or configuration", other.display());
            fs::remove_dir_all(&other).map_err(at(&other))?;
        }
        let kernel = Self::cached(flavour).ok_or("the kernel that was just put into the cache is gone")?;
        let size: u64 = fs::metadata(kernel.vmlinux()).map_or(0, |file| file.len());
        let seconds = begun.elapsed().as_secs();
        eprintln!(
            "lab: {} is in {} after {} min {} s; the kernel has {} MB",
            kernel.package,
            directory.display(),
            seconds / 60,
            seconds % 60,
            size.div_ceil(1_000_000)
        );
        Ok(kernel)
    }

    /// Returns its path in the cache.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns `true` if our modules can be built for it.
    pub(crate) fn has_build_tree(&self) -> bool {
        self.directory.join(BUILD_TREE).is_dir()
    }

    /// Returns the bare kernel, which QEMU boots.
    pub(crate) fn vmlinux(&self) -> PathBuf {
        self.directory.join("vmlinux")
    }

    /// Returns the file names of the modules for a purpose, each after its dependencies.
    /// Kernels that the lab builds have no lists.
    pub(crate) fn modules(&self, purpose: Purpose) -> Vec<String> {
        let list = fs::read_to_string(self.directory.join(purpose.list())).unwrap_or_default();
        list.lines().map(str::to_owned).collect()
    }

    /// Returns a module by its file name.
    pub(crate) fn module(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }
}

fn kernels() -> PathBuf {
    workdir::cache().join("kernels")
}

/// Returns the directory name of a kernel built from the source of this version.
fn directory(flavour: Flavour, version: &str) -> String {
    let options = flavour.options().unwrap_or_default();
    format!("{}-{}", flavour.name(), key([options.as_bytes(), version.as_bytes()]))
}

/// Returns all cached copies of a kernel that the lab builds, current or not.
fn copies(flavour: Flavour) -> Vec<PathBuf> {
    let ours = |name: &str| {
        let rest = name.strip_prefix(flavour.name()).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| rest.len() == KEY_LENGTH && rest.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let entries = fs::read_dir(kernels()).into_iter().flatten().flatten();
    entries.filter(|entry| ours(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}

/// Creates the directory `ready` with the needed files of a package.
fn prepare(deb: &Path, work: &Path, ready: &Path, interrupt: &Interrupt) -> Result {
    let tree = work.join("tree");
    fs::create_dir_all(&tree).map_err(at(&tree))?;
    fs::create_dir_all(ready).map_err(at(ready))?;

    unpack_package(deb, &tree, &PARTS, interrupt)?;

    let files = files(&tree)?;
    let image =
        files.iter().find(|path| name(path).starts_with("vmlinuz-")).ok_or("it has no kernel image")?;
    let image = fs::read(image).map_err(at(image))?;
    let vmlinux = ready.join("vmlinux");
    if payload::is_arm64(&image) {
        // An arm64 image is not compressed, and QEMU boots it directly.
        fs::write(&vmlinux, image).map_err(at(&vmlinux))?;
    } else {
        let (packing, packed) =
            payload::find(&image).map_err(|error| format!("the kernel image: {error}"))?;
        unpack(packing.tool(), packed, &vmlinux, interrupt)?;
        if !fs::read(&vmlinux).map_err(at(&vmlinux))?.starts_with(b"\x7fELF") {
            return Err("the content of the kernel image is not an ELF file".into());
        }
    }

    for (purpose, names) in MODULES {
        let mut list = Vec::new();
        for module in names {
            add_module(module, &files, ready, &mut list, interrupt)?;
        }
        fs::write(ready.join(purpose.list()), list.concat())?;
    }
    Ok(())
}

/// Unpacks `module`, after its dependencies, and adds their lines to `list`. A module without a
/// file is built in.
fn add_module(
    module: &str,
    files: &[PathBuf],
    ready: &Path,
    list: &mut Vec<String>,
    interrupt: &Interrupt,
) -> Result {
    let same = |path: &&PathBuf| {
        let file = name(path).replace('-', "_");
        file.split_once(".ko").is_some_and(|(stem, _)| stem == module.replace('-', "_"))
    };
    let Some(path) = files.iter().find(same) else { return Ok(()) };
    let line = format!("{module}.ko\n");
    if list.contains(&line) {
        return Ok(());
    }
    let packed = fs::read(path).map_err(at(path))?;
    let unpacked = ready.join(line.trim());
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => unpack("xz", &packed, &unpacked, interrupt)?,
        Some("zst") => unpack("zstd", &packed, &unpacked, interrupt)?,
        _ => fs::write(&unpacked, packed).map_err(at(&unpacked))?,
    }
    for needed in depends(&fs::read(&unpacked).map_err(at(&unpacked))?) {
        add_module(&needed, files, ready, list, interrupt)?;
    }
    list.push(line);
    Ok(())
}

/// Returns the dependencies of a module, from the text in it: `depends=a,b`.
fn depends(module: &[u8]) -> Vec<String> {
    let entry = module.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(b"depends="));
    let names = entry.unwrap_or_default().split(|&byte| byte == b',').filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Unpacks `packed` by `tool`, which is `xz` or `zstd`, into the file `to`.
fn unpack(tool: &str, packed: &[u8], to: &Path, interrupt: &Interrupt) -> Result {
    let file = File::create(to).map_err(at(to))?;
    let (reader, mut writer) = std::io::pipe()?;
    let mut command = Command::new(tool);
    command.args(["-d", "-c"]).stdout(file);
    thread::scope(|scope| {
        // If the tool ends early, its own status is more informative than a broken pipe.
        scope.spawn(move || writer.write_all(packed));
        pipe(&mut command, reader, interrupt)
    })
    .map_err(|error| format!("{}: {error}", to.display()).into())
}

/// Runs `command` with `input` and requires success.
pub(super) fn pipe(command: &mut Command, input: impl Into<Stdio>, interrupt: &Interrupt) -> Result {
    let status = interrupt.run_with(command, input.into())?;
    if status.success() { Ok(()) } else { Err(format!("{status} from {command:?}").into()) }
}

/// Unpacks the files of a package that match one of the patterns `parts`, or all files without
/// patterns, below `tree`.
pub(super) fn unpack_package(deb: &Path, tree: &Path, parts: &[&str], interrupt: &Interrupt) -> Result {
    let [dpkg, tar] = tools::require(["dpkg-deb", "tar"])?;
    let mut dpkg = Command::new(dpkg).arg("--fsys-tarfile").arg(deb).stdout(Stdio::piped()).spawn()?;
    let archive = dpkg.stdout.take().ok_or("dpkg-deb has no output")?;
    let mut tar = Command::new(tar);
    tar.args(["-x", "--no-same-owner", "--wildcards", "-C"]).arg(tree).args(parts);
    let unpacked = pipe(&mut tar, archive, interrupt);
    // If tar has ended early, the other end of the pipe is closed and dpkg-deb ends as well.
    let status = dpkg.status_within(TOOL_LIMIT)?;
    unpacked.map_err(|error| about(&format!("cannot unpack {}", deb.display()), error))?;
    if !status.success() {
        return Err(format!("{status} from dpkg-deb").into());
    }
    Ok(())
}

/// Returns all files below `directory`.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut rest = vec![directory.to_owned()];
    while let Some(next) = rest.pop() {
        for entry in fs::read_dir(&next).map_err(at(&next))? {
            let path = entry?.path();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() { rest.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The length of a name.
const KEY_LENGTH: usize = 16;

/// Returns a name for `parts`, a hash of them in this order. It is the same in all versions of
/// Rust.
pub(super) fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = FnvHasher::default();
    for part in parts {
        // With its length, so that different lists of parts differ.
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part);
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_module_dependencies() {
        assert_eq!(depends(b"\x7fELF..\0license=GPL\0depends=9pnet,netfs\0name=9p\0"), ["9pnet", "netfs"]);
        assert!(depends(b"\0depends=\0").is_empty());
        assert!(depends(b"no modinfo").is_empty());
    }

    #[test]
    fn names_differ_with_every_part() {
        let name = |parts: &[&str]| key(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(name(&["a", "b"]), name(&["a", "b"]));
        assert_eq!(name(&["a", "b"]).len(), KEY_LENGTH);
        for other in [&["a", "c"][..], &["ab"], &["", "ab"], &["b", "a"], &["a", "b", ""]] {
            assert_ne!(name(&["a", "b"]), name(other), "{other:?}");
        }
    }
}
