//! Devices from user space: [registers in memory](region), [ports of x86](ports), and [interrupts](uio) that release a task.
//!
//! A driver in the kernel costs two changes of privilege and whatever the driver and its subsystem do besides; a register that is
//! mapped into the process costs what the bus takes. What is needed of the kernel is a mapping, once, and a descriptor that becomes
//! readable with an interrupt, which is what [UIO](uio) gives: [`Uio`](uio::Uio) is an event source of a bound task as it is.
//!
//! | from | what it gives | needs |
//! |---|---|---|
//! | [`uio::Uio`] | registers, ports' numbers, an interrupt | a UIO driver bound to the device; read and write for `/dev/uioN` |
//! | [`pci::Function`] | the regions of a PCI function, its interrupt by `uio_pci_generic` | write for `resourceN` in `/sys`: root |
//! | [`region::Region::physical`] | any physical address | `/dev/mem`, and a kernel that lets it map that |
//! | [`ports::Ports`] | ports of x86 | `CAP_SYS_RAWIO` |
//!
//! Registers are typed by [`safe_mmio`]: a field says whether it may be read and written, and whether reading it changes the device.
//!
//! ```
//! use punctual_io::region::Region;
//! use safe_mmio::{field, field_shared, fields::{ReadPure, ReadPureWrite}};
//!
//! #[repr(C)]
//! struct Timer {
//!     control: ReadPureWrite<u32>,
//!     count: ReadPure<u32>,
//! }
//!
//! // In place of a device: a region of ordinary memory, as for a test of a driver.
//! let region = Region::of_memory(4096)?;
//! let mut timer = region.registers::<Timer>(0x10)?;
//! let mut all = timer.get();
//! field!(all, control).write(1);
//! let shared = timer.get_shared();
//! assert_eq!(field_shared!(shared, control).read(), 1);
//! # Ok::<(), punctual_io::Error>(())
//! ```
//!
//! # Real-time safety
//!
//! Opening, finding and mapping allocate and enter the kernel: do it in `init`. Reads and writes of registers do neither; the pages
//! of a device are mapped when the region is, so there is no fault later. [`Uio::take`](uio::Uio::take) and
//! [`Uio::unmask`](uio::Uio::unmask) are a system call each that does not block.
//!
//! # Safety
//!
//! A device may be able to write to any memory of the machine, so what is written to its registers may break what the compiler relies on.
//! Nothing here can know that: mapping is `unsafe`, once, and the accesses behind it are not.

mod error;
pub mod pci;
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
pub mod ports;
pub mod region;
mod sysfs;
pub mod uio;

pub use safe_mmio;

pub use self::error::Error;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
