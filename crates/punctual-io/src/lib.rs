//! Devices from user space: [registers in memory](region), [ports of x86](ports),
//! [interrupts](uio) that release a task, and [hardware clocks](clock).
//!
//! A kernel driver costs two privilege changes per access, plus the work of the driver and its
//! subsystem. A register mapped into the process costs one bus access. The kernel only provides the
//! mapping, once, and a descriptor that becomes readable on an interrupt. [UIO](uio) offers both:
//! [`Uio`](uio::Uio) is an event source for bound tasks.
//!
//! | type | provides | requires |
//! |---|---|---|
//! | [`uio::Uio`] | registers, port numbers, an interrupt | a UIO driver bound to the device; read and write access to `/dev/uioN` |
//! | [`pci::Function`] | regions of a PCI function, its interrupt through `uio_pci_generic` | write access to `resourceN` in `/sys`: root |
//! | [`region::Region::physical`] | any physical address | `/dev/mem`, and a kernel that permits the mapping |
//! | [`clock::DeviceClock`] | the time of a PTP hardware clock | read access to `/dev/ptpN` |
//! | [`ports::Ports`] | ports of x86 | `CAP_SYS_RAWIO` |
//!
//! Registers are typed by [`safe_mmio`]: each field states whether it can be read and written, and
//! whether reading it changes the device.
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
//! Opening, finding and mapping a device allocate and enter the kernel: call them in `init`.
//! Register accesses do neither; the pages of a device are mapped eagerly, so accesses cause no
//! page faults. [`Uio::take`](uio::Uio::take) and [`Uio::unmask`](uio::Uio::unmask) are one
//! non-blocking system call each.
//!
//! # Safety
//!
//! A device may be able to write to any memory of the machine, so a register write can break the
//! compiler's assumptions. This crate cannot detect that: mapping is `unsafe`, once, and the
//! accesses that follow are safe.

pub mod clock;
mod error;
pub mod pci;
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
pub mod ports;
pub mod region;
mod sysfs;
pub mod uio;

pub use safe_mmio;

pub use self::error::Error;
