//! Functions of PCI devices: their registers, and their interrupt through the kernel's
//! `uio_pci_generic`.
//!
//! That driver binds to any function with a line interrupt:
//!
//! ```sh
//! modprobe uio_pci_generic
//! echo uio_pci_generic >/sys/bus/pci/devices/0000:00:04.0/driver_override
//! echo 0000:00:04.0 >/sys/bus/pci/drivers_probe
//! ```
//!
//! On an interrupt, the driver sets *Interrupt Disable* in the function's command register. A job
//! therefore silences the device and then [unmasks](Function::unmask) the interrupt.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::region::{self, Region};
use crate::uio::Uio;
use crate::{Error, sysfs};

/// Directory in which the kernel describes the functions.
const DEVICES: &str = "/sys/bus/pci/devices";

/// Offset of the command register in the configuration space, in bytes (PCI Local Bus Specification
/// 3.0, section 6.2.2).
const COMMAND: u64 = 4;
/// Command bit that enables memory accesses.
const MEMORY_SPACE: u16 = 1 << 1;
/// Command bit that disables the line interrupt.
const INTERRUPT_DISABLE: u16 = 1 << 10;

/// Flag in the third column of `resource`: I/O ports (`IORESOURCE_IO`).
const IO: u64 = 0x100;
/// Flag in the third column of `resource`: memory (`IORESOURCE_MEM`).
const MEMORY: u64 = 0x200;

/// A function of a device on the PCI bus.
#[derive(Debug)]
pub struct Function {
    directory: PathBuf,
    configuration: File,
}

/// A base address register and the range that it decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Index, as [`Function::map`] expects it.
    pub index: u32,
    /// Physical address, or first port.
    pub address: u64,
    /// Length, in bytes or ports.
    pub length: u64,
    /// Whether it decodes ports instead of memory.
    pub ports: bool,
}

impl Function {
    /// Opens the function at an address, as `lspci -D` prints it: `0000:00:04.0`.
    ///
    /// # Errors
    /// Fails if the function does not exist, or if its configuration space is not writable, which
    /// requires root.
    pub fn at(address: &str) -> Result<Self, Error> {
        Self::at_below(address, Path::new(DEVICES))
    }

    /// Opens the only function with this vendor and device ID.
    ///
    /// # Errors
    /// Fails if there is none or more than one, or as [`at`](Self::at) does.
    pub fn find(vendor: u16, device: u16) -> Result<Self, Error> {
        let address = find(vendor, device, Path::new(DEVICES))?;
        Self::at(&address)
    }

    fn at_below(address: &str, devices: &Path) -> Result<Self, Error> {
        let directory = devices.join(address);
        if address.is_empty() || address.contains('/') || address.starts_with('.') || !directory.is_dir() {
            return Err(Error::Absent {
                what: format!("PCI function at `{}`", address.escape_debug()),
                fix: "the address is as `lspci -D` prints it, such as 0000:00:04.0",
            });
        }
        let path = directory.join("config");
        let configuration = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(Error::file(&path, "it takes root"))?;
        Ok(Self { directory, configuration })
    }

    /// Returns the base address registers that decode a range.
    ///
    /// # Errors
    /// Fails if the kernel's description cannot be read.
    pub fn bars(&self) -> Result<Vec<Bar>, Error> {
        let path = self.directory.join("resource");
        let text = sysfs::text(&path)?;
        // The first six entries; an expansion ROM and windows of bridges follow.
        let mut bars = Vec::new();
        for (index, line) in (0..6).zip(text.lines()) {
            let malformed = || Error::Malformed {
                path: path.clone(),
                text: line.to_owned(),
                wanted: "first, last and flags of a region",
            };
            let mut numbers = line.split_whitespace().map(sysfs::parse);
            let mut next = || numbers.next().flatten().ok_or_else(malformed);
            let (first, last, flags) = (next()?, next()?, next()?);
            if flags & (IO | MEMORY) == 0 {
                continue;
            }
            let length =
                last.checked_sub(first).and_then(|span| span.checked_add(1)).ok_or_else(malformed)?;
            bars.push(Bar { index, address: first, length, ports: flags & IO != 0 });
        }
        Ok(bars)
    }

    /// Maps the memory of a base address register and enables memory accesses.
    ///
    /// # Safety
    /// As for [`Region::physical`].
    ///
    /// # Errors
    /// Fails if the register does not exist or decodes ports, or if the kernel denies the mapping.
    pub unsafe fn map(&self, bar: u32) -> Result<Region, Error> {
        let bars = self.bars()?;
        let found = bars.iter().find(|its| its.index == bar && !its.ports).ok_or_else(|| Error::Absent {
            what: format!("memory behind base address register {bar} of {}", self.directory.display()),
            fix: "`lspci -v` says which registers decode memory; for ports there is `ports::Ports`",
        })?;
        // A function without a driver does not respond to memory accesses by default.
        let configuration = self.directory.join("config");
        self.change_command(|command| command | MEMORY_SPACE)
            .map_err(Error::file(&configuration, "it takes root"))?;
        let path = self.directory.join(format!("resource{bar}"));
        let fix =
            "it takes root, a kernel that is not locked down, and a region that no driver claims for itself";
        let file = region::open(&path, 0, fix)?;
        let length = usize::try_from(found.length)
            .map_err(|_| Error::Range { address: found.address, length: found.length })?;
        // A region smaller than a page may start within one.
        let before = usize::try_from(found.address % rustix::param::page_size() as u64).unwrap_or(0);
        Region::within(std::os::fd::AsFd::as_fd(&file), &path, 0, before, length, fix)
    }

    /// Returns the UIO device of the function.
    ///
    /// # Errors
    /// Fails if no UIO driver is bound to it, or as [`Uio::open`] does.
    pub fn uio(&self) -> Result<Uio, Error> {
        let mut names = sysfs::names(&self.directory.join("uio"))?;
        match names.len() {
            0 => Err(Error::Absent {
                what: format!("UIO driver bound to {}", self.directory.display()),
                fix: "load uio_pci_generic, write its name to `driver_override` there and the address to /sys/bus/pci/drivers_probe",
            }),
            1 => Uio::open(Path::new("/dev").join(names.remove(0))),
            _ => Err(Error::Ambiguous {
                what: format!("the UIO device of {}", self.directory.display()),
                candidates: names,
            }),
        }
    }

    /// Enables the line interrupt again after a job has silenced the device. Two non-blocking
    /// system calls.
    ///
    /// # Errors
    /// Fails if the function was removed.
    pub fn unmask(&self) -> io::Result<()> {
        self.change_command(|command| command & !INTERRUPT_DISABLE)
    }

    fn change_command(&self, change: impl FnOnce(u16) -> u16) -> io::Result<()> {
        let mut bytes = [0; 2];
        self.configuration.read_exact_at(&mut bytes, COMMAND)?;
        let before = u16::from_le_bytes(bytes);
        if before == u16::MAX {
            return Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the function does not answer: it is gone or switched off",
            ));
        }
        let after = change(before);
        if after == before {
            return Ok(());
        }
        self.configuration.write_all_at(&after.to_le_bytes(), COMMAND)
    }
}

/// Returns the address of the only function with this vendor and device ID.
fn find(vendor: u16, device: u16, devices: &Path) -> Result<String, Error> {
    let mut found = Vec::new();
    for address in sysfs::names(devices)? {
        let is = |file: &str, wanted: u16| {
            // Functions may be removed during the search.
            sysfs::number(&devices.join(&address).join(file)).is_ok_and(|number| number == u64::from(wanted))
        };
        if is("vendor", vendor) && is("device", device) {
            found.push(address);
        }
    }
    let what = || format!("PCI function {vendor:04x}:{device:04x}");
    match found.len() {
        0 => Err(Error::Absent { what: what(), fix: "`lspci -nn` lists vendor and device of all functions" }),
        1 => Ok(found.remove(0)),
        _ => Err(Error::Ambiguous { what: what(), candidates: found }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use safe_mmio::fields::ReadPure;
    use tempfile::TempDir;

    use super::*;

    const ADDRESS: &str = "0000:00:04.0";

    /// Creates a substitute for `/sys/bus/pci/devices`: a function whose third register decodes a
    /// quarter of a page.
    fn tree() -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (address, device) in [(ADDRESS, "0x11e8"), ("0000:00:05.0", "0x0001"), ("0000:00:06.0", "0x0001")]
        {
            let directory = tree.path().join(address);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("vendor"), "0x1234\n").unwrap();
            fs::write(directory.join("device"), device).unwrap();
        }
        let directory = tree.path().join(ADDRESS);
        let mut configuration = [0; 64];
        configuration[4..6].copy_from_slice(&(INTERRUPT_DISABLE | 1).to_le_bytes());
        fs::write(directory.join("config"), configuration).unwrap();
        let resource = "0x0 0x0 0x0\n\
                        0x000000000000c000 0x000000000000c01f 0x0000000000040101\n\
                        0x00000000fea00400 0x00000000fea007ff 0x0000000000040200\n";
        fs::write(directory.join("resource"), resource).unwrap();
        let words: Vec<u8> = (0..1024_u32).flat_map(u32::to_ne_bytes).collect();
        fs::write(directory.join("resource2"), words).unwrap();
        tree
    }

    fn command(tree: &TempDir) -> u16 {
        let bytes = fs::read(tree.path().join(ADDRESS).join("config")).unwrap();
        u16::from_le_bytes([bytes[4], bytes[5]])
    }

    #[test]
    fn finds_device_by_vendor_and_id() {
        let tree = tree();
        assert_eq!(find(0x1234, 0x11e8, tree.path()).unwrap(), ADDRESS);
        assert!(
            matches!(find(0x1234, 1, tree.path()).unwrap_err(), Error::Ambiguous { candidates, .. } if candidates.len() == 2)
        );
        let absent = find(0x1235, 1, tree.path()).unwrap_err().to_string();
        assert!(absent.starts_with("there is no PCI function 1235:0001; "), "{absent}");
    }

    #[test]
    fn rejects_malformed_addresses() {
        let tree = tree();
        for address in ["", ".", "..", "/etc", "0000:00:09.0", "../x", "\x1b"] {
            let error = Function::at_below(address, tree.path()).unwrap_err();
            assert!(matches!(error, Error::Absent { .. }) && !error.to_string().contains('\x1b'), "{error}");
        }
    }

    #[test]
    fn reports_decoded_regions() {
        let tree = tree();
        let function = Function::at_below(ADDRESS, tree.path()).unwrap();
        let ports = Bar { index: 1, address: 0xc000, length: 32, ports: true };
        let memory = Bar { index: 2, address: 0xfea0_0400, length: 0x400, ports: false };
        assert_eq!(function.bars().unwrap(), [ports, memory]);
        for text in ["nonsense", "0x1 0x0 0x200", "0x0 0xffffffffffffffff 0x200", "0x0 0x1"] {
            fs::write(tree.path().join(ADDRESS).join("resource"), text).unwrap();
            assert!(matches!(function.bars().unwrap_err(), Error::Malformed { .. }), "{text}");
        }
    }

    #[test]
    fn maps_memory_and_lets_it_answer() {
        let tree = tree();
        let function = Function::at_below(ADDRESS, tree.path()).unwrap();
        // SAFETY: the mapped object is an ordinary file.
        let region = unsafe { function.map(2) }.unwrap();
        assert_eq!(region.len(), 0x400);
        assert_eq!(region.registers::<ReadPure<u32>>(8).unwrap().get_shared().read(), (0x400 + 8) / 4);
        assert_eq!(command(&tree), INTERRUPT_DISABLE | MEMORY_SPACE | 1);
        for bar in [0, 1, 3] {
            // SAFETY: the call fails before it maps anything.
            let error = unsafe { function.map(bar) }.unwrap_err();
            assert!(matches!(error, Error::Absent { .. }), "{error}");
        }
    }

    #[test]
    fn unmasks_only_the_interrupt() {
        let tree = tree();
        let function = Function::at_below(ADDRESS, tree.path()).unwrap();
        function.unmask().unwrap();
        assert_eq!(command(&tree), 1);
        let path = tree.path().join(ADDRESS).join("config");
        fs::write(&path, [0xff; 64]).unwrap();
        assert_eq!(function.unmask().unwrap_err().kind(), io::ErrorKind::NotConnected);
        assert_eq!(command(&tree), u16::MAX);
    }

    #[test]
    fn error_explains_binding_of_a_driver() {
        let tree = tree();
        let error = Function::at_below(ADDRESS, tree.path()).unwrap().uio().unwrap_err().to_string();
        assert!(error.contains("driver_override"), "{error}");
    }
}
