//! Devices of the kernel's UIO drivers: their registers, and their interrupts as an event source.
//!
//! A UIO driver does one thing in the kernel: it silences the device's interrupt and counts it.
//! `/dev/uioN` then becomes readable, which releases a bound task (`binds`) or wakes a poller. The
//! job services the device and enables the interrupt again.
//!
//! Drivers: `uio_pci_generic` for a PCI function with a line interrupt, see [`crate::pci`];
//! `uio_pdrv_genirq` for devices in a device tree; or a driver specific to the device.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::region::{self, Region};
use crate::{Error, sysfs};

/// Directory in which the kernel describes the devices.
const CLASS: &str = "/sys/class/uio";

/// Remedy for a device that cannot be opened.
const FIX: &str = "it takes root, or a rule of udev that gives the device to a group";

/// A device bound to a UIO driver.
///
/// Readable while there are interrupts that [`take`](Self::take) has not returned.
#[derive(Debug)]
pub struct Uio {
    device: File,
    path: PathBuf,
    /// Directory of the device in `/sys/class/uio`.
    described: PathBuf,
    /// Interrupt count of the driver at the last `take`.
    taken: Option<u32>,
}

/// A part of the device's memory, as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Index, as [`Uio::map`] expects it.
    pub index: u32,
    /// Name; may be empty.
    pub name: String,
    /// Physical address.
    pub address: u64,
    /// Length, in bytes.
    pub length: u64,
    /// Offset in its first page, in bytes.
    offset: u64,
}

/// A range of ports for `ports::Ports`, as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRange {
    /// Index.
    pub index: u32,
    /// Name; may be empty.
    pub name: String,
    /// First port.
    pub first: u16,
    /// Number of ports.
    pub count: u16,
}

/// Interrupt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupts {
    /// Interrupts since the driver was loaded, modulo 2³².
    pub total: u32,
    /// Interrupts since the last call; more than one if several occurred before a job ran.
    pub new: u32,
}

impl Uio {
    /// Opens a device by path, such as `/dev/uio0`.
    ///
    /// # Errors
    /// Fails if the device does not exist, access is denied, or the kernel does not describe it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_described(path.as_ref(), Path::new(CLASS))
    }

    /// Opens the device with this name, which its driver assigned.
    ///
    /// # Errors
    /// Fails if no device or more than one has the name, or as [`open`](Self::open) does.
    pub fn named(name: &str) -> Result<Self, Error> {
        let device = find(name, Path::new(CLASS))?;
        Self::open(Path::new("/dev").join(device))
    }

    fn open_described(path: &Path, class: &Path) -> Result<Self, Error> {
        let device = region::open(path, libc::O_NONBLOCK, FIX)?;
        let absent = || Error::Absent {
            what: format!("device of UIO at {}", path.display()),
            fix: "give the path of one, as in /dev/uio0; `ls /sys/class/uio` lists them",
        };
        let described = class.join(path.file_name().ok_or_else(absent)?);
        if !described.is_dir() {
            return Err(absent());
        }
        Ok(Self { device, path: path.to_owned(), described, taken: None })
    }

    /// Returns the name that the driver assigned.
    ///
    /// # Errors
    /// Fails if the kernel does not provide it.
    pub fn name(&self) -> Result<String, Error> {
        sysfs::text(&self.described.join("name"))
    }

    /// Returns the parts of the device's memory, in order. Some drivers, such as `uio_pci_generic`,
    /// provide none.
    ///
    /// # Errors
    /// Fails if the kernel's description cannot be read.
    pub fn maps(&self) -> Result<Vec<Map>, Error> {
        let directory = self.described.join("maps");
        let mut maps = Vec::new();
        for name in sysfs::names(&directory)? {
            let Some(index) = sysfs::numbered(&name, "map") else { continue };
            let map = directory.join(name);
            maps.push(Map {
                index,
                name: label(&map),
                address: sysfs::number(&map.join("addr"))?,
                length: sysfs::number(&map.join("size"))?,
                offset: sysfs::number(&map.join("offset"))?,
            });
        }
        maps.sort_by_key(|map| map.index);
        Ok(maps)
    }

    /// Returns the port ranges of the device, in order.
    ///
    /// # Errors
    /// Fails if the kernel's description cannot be read.
    pub fn ports(&self) -> Result<Vec<PortRange>, Error> {
        let directory = self.described.join("portio");
        let mut ranges = Vec::new();
        for name in sysfs::names(&directory)? {
            let Some(index) = sysfs::numbered(&name, "port") else { continue };
            let port = directory.join(name);
            let number = |file: &str| {
                let path = port.join(file);
                let number = sysfs::number(&path)?;
                u16::try_from(number).map_err(|_| Error::Malformed {
                    path,
                    text: number.to_string(),
                    wanted: "the number of a port",
                })
            };
            ranges.push(PortRange {
                index,
                name: label(&port),
                first: number("start")?,
                count: number("size")?,
            });
        }
        ranges.sort_by_key(|range| range.index);
        Ok(ranges)
    }

    /// Maps a part of the device's memory.
    ///
    /// # Safety
    /// As for [`Region::physical`].
    ///
    /// # Errors
    /// Fails if the device has no such part, or the driver does not map it.
    pub unsafe fn map(&self, index: u32) -> Result<Region, Error> {
        let maps = self.maps()?;
        let map = maps.iter().find(|map| map.index == index).ok_or_else(|| Error::Absent {
            what: format!("map{index} of {}, which has {}", self.path.display(), maps.len()),
            fix: "its parts are in /sys/class/uio/uioN/maps; a driver without any leaves registers to the bus, such as `pci::Function::map`",
        })?;
        let range = || Error::Range { address: map.address, length: map.length };
        let page = rustix::param::page_size() as u64;
        // By the UIO convention, the file offset selects the part, in pages.
        let which = page.checked_mul(u64::from(map.index)).ok_or_else(range)?;
        let length = usize::try_from(map.length).map_err(|_| range())?;
        let before = usize::try_from(map.offset).ok().filter(|_| map.offset < page).ok_or_else(range)?;
        let fix = "the driver maps its parts as /sys/class/uio/uioN/maps says";
        Region::within(self.device.as_fd(), &self.path, which, before, length, fix)
    }

    /// Returns new interrupts, or `None`. One non-blocking system call.
    ///
    /// # Errors
    /// Fails if the device was removed.
    pub fn take(&mut self) -> io::Result<Option<Interrupts>> {
        let mut bytes = [0; 4];
        match (&self.device).read(&mut bytes) {
            Ok(4) => {}
            Ok(length) => return Err(io::Error::other(format!("a UIO device gives 4 bytes, not {length}"))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        let total = u32::from_ne_bytes(bytes);
        // Interrupts before the device was opened do not count, and a successful read implies at
        // least one.
        let new = self.taken.map_or(1, |taken| total.wrapping_sub(taken));
        self.taken = Some(total);
        Ok(Some(Interrupts { total, new }))
    }

    /// Enables or disables the device's interrupt. One non-blocking system call.
    ///
    /// Drivers that silence the interrupt require this after each one; others ignore it.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::Unsupported`] if the driver leaves this to the bus, as
    /// `uio_pci_generic` does: see [`pci::Function::unmask`](crate::pci::Function::unmask).
    pub fn unmask(&self, unmasked: bool) -> io::Result<()> {
        match (&self.device).write(&i32::from(unmasked).to_ne_bytes()) {
            Ok(4) => Ok(()),
            Ok(length) => Err(io::Error::other(format!("a UIO device takes 4 bytes, not {length}"))),
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, error))
            }
            Err(error) => Err(error),
        }
    }
}

/// An event source for bound tasks.
impl AsFd for Uio {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Returns the name of a part, which is optional.
fn label(directory: &Path) -> String {
    sysfs::text(&directory.join("name")).unwrap_or_default()
}

/// Returns the only device with this name, such as `uio0`.
fn find(name: &str, class: &Path) -> Result<String, Error> {
    let mut found = Vec::new();
    for device in sysfs::names(class)? {
        // Devices may be removed during the search.
        if sysfs::text(&class.join(&device).join("name")).is_ok_and(|its| its == name) {
            found.push(device);
        }
    }
    let what = || format!("device of UIO called `{}`", name.escape_debug());
    match found.len() {
        0 => Err(Error::Absent {
            what: what(),
            fix: "is its driver loaded and bound? `grep . /sys/class/uio/*/name` lists what there is",
        }),
        1 => Ok(found.remove(0)),
        _ => Err(Error::Ambiguous { what: what(), candidates: found }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;

    use safe_mmio::fields::ReadPure;
    use tempfile::TempDir;

    use super::*;

    /// Creates substitutes for `/sys/class/uio` and `/dev`: two devices, the first with memory and
    /// ports.
    fn tree() -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        file("class/uio0/name", "motor\n");
        file("class/uio1/name", "twin\n");
        file("class/uio2/name", "twin\n");
        file("class/uio0/maps/map1/addr", "0x00000000fe001000\n");
        file("class/uio0/maps/map1/size", "0x0000000000000100\n");
        file("class/uio0/maps/map1/offset", "0x10\n");
        file("class/uio0/maps/map1/name", "registers\n");
        file("class/uio0/maps/map0/addr", "0x0\n");
        file("class/uio0/maps/map0/size", "0x1000\n");
        file("class/uio0/maps/map0/offset", "0x0\n");
        file("class/uio0/portio/port0/start", "0x378\n");
        file("class/uio0/portio/port0/size", "0x3\n");
        let words: Vec<u8> = (0..4096_u32).flat_map(u32::to_ne_bytes).collect();
        fs::create_dir(tree.path().join("dev")).unwrap();
        fs::write(tree.path().join("dev/uio0"), words).unwrap();
        tree
    }

    fn open(tree: &TempDir) -> Uio {
        Uio::open_described(&tree.path().join("dev/uio0"), &tree.path().join("class")).unwrap()
    }

    #[test]
    fn finds_device_by_name() {
        let tree = tree();
        let find = |name| find(name, &tree.path().join("class"));
        assert_eq!(find("motor").unwrap(), "uio0");
        assert_eq!(
            find("twin").unwrap_err().to_string(),
            "device of UIO called `twin` may be uio1 or uio2; open the one that is meant by its path"
        );
        assert!(
            matches!(find("none\x1b").unwrap_err(), Error::Absent { what, .. } if what.contains("none\\u{1b}"))
        );
    }

    #[test]
    fn reports_maps_and_interrupt() {
        let tree = tree();
        let uio = open(&tree);
        assert_eq!(uio.name().unwrap(), "motor");
        let maps = uio.maps().unwrap();
        assert_eq!(maps.iter().map(|map| map.index).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(
            (maps[1].name.as_str(), maps[1].address, maps[1].length),
            ("registers", 0xfe00_1000, 0x100)
        );
        assert_eq!(maps[0].name, "");
        let port = PortRange { index: 0, name: String::new(), first: 0x378, count: 3 };
        assert_eq!(uio.ports().unwrap(), [port]);
    }

    #[test]
    fn maps_numbered_part_at_page_offset() {
        let tree = tree();
        // SAFETY: the mapped object is an ordinary file.
        let region = unsafe { open(&tree).map(1) }.unwrap();
        assert_eq!(region.len(), 0x100);
        let word = region.registers::<ReadPure<u32>>(4).unwrap();
        assert_eq!(word.get_shared().read(), (4096 + 0x10 + 4) / 4);
    }

    #[test]
    fn rejects_missing_or_invalid_parts() {
        let tree = tree();
        let uio = open(&tree);
        // SAFETY: the mapped object is an ordinary file.
        let map = |index| unsafe { uio.map(index) }.unwrap_err();
        assert!(map(2).to_string().contains("map2 of"), "{}", map(2));
        let write = |file: &str, text: &str| {
            fs::write(tree.path().join("class/uio0/maps/map1").join(file), text).unwrap();
        };
        write("offset", "0x1000");
        assert!(matches!(map(1), Error::Range { .. }));
        write("offset", "0x0");
        write("size", "0xffffffffffffffff");
        assert!(matches!(map(1), Error::Range { .. }));
        for text in ["", "0x", "-1", "0x+1", "+1", "0x1ffffffffffffffff", "\x1b[2J"] {
            write("size", text);
            let error = map(1).to_string();
            assert!(error.ends_with("is not a number") && !error.contains('\x1b'), "{error}");
        }
    }

    #[test]
    fn rejects_ports_above_last() {
        let tree = tree();
        fs::write(tree.path().join("class/uio0/portio/port0/start"), "0x10000").unwrap();
        assert!(matches!(open(&tree).ports().unwrap_err(), Error::Malformed { .. }));
    }

    #[test]
    fn rejects_missing_and_foreign_devices() {
        let tree = tree();
        let open = |path: &str| Uio::open_described(&tree.path().join(path), &tree.path().join("class"));
        fs::write(tree.path().join("dev/other"), "").unwrap();
        assert!(matches!(open("dev/other").unwrap_err(), Error::Absent { .. }));
        assert!(matches!(open("dev/none").unwrap_err(), Error::File { .. }));
    }

    /// Creates a device whose interrupts are datagrams.
    fn interrupting() -> (Uio, UnixDatagram) {
        let (device, driver) = UnixDatagram::pair().unwrap();
        device.set_nonblocking(true).unwrap();
        let device = File::from(OwnedFd::from(device));
        (Uio { device, path: PathBuf::new(), described: PathBuf::new(), taken: None }, driver)
    }

    #[test]
    fn counts_interrupts_across_wrap() {
        let (mut uio, driver) = interrupting();
        assert_eq!(uio.take().unwrap(), None);
        let mut taken = |total: u32| {
            driver.send(&total.to_ne_bytes()).unwrap();
            uio.take().unwrap().unwrap()
        };
        assert_eq!(taken(u32::MAX - 1), Interrupts { total: u32::MAX - 1, new: 1 });
        assert_eq!(taken(u32::MAX), Interrupts { total: u32::MAX, new: 1 });
        assert_eq!(taken(2), Interrupts { total: 2, new: 3 });
        driver.send(&[1, 2]).unwrap();
        uio.take().unwrap_err();
    }

    #[test]
    fn reenables_interrupt() {
        let (uio, driver) = interrupting();
        let mut bytes = [0; 4];
        for unmasked in [true, false] {
            uio.unmask(unmasked).unwrap();
            assert_eq!(driver.recv(&mut bytes).unwrap(), 4);
            assert_eq!(i32::from_ne_bytes(bytes), i32::from(unmasked));
        }
    }
}
