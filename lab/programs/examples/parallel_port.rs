//! A task is bound to the interrupt of a PC's parallel port, which another task triggers by sending
//! a byte: by x86 port I/O, as in Wassen and Lankes, "User-Mode Interrupts"; or by the kernel's
//! driver.
//!
//!     parallel_port uio|kernel COUNT
//!
//! Prints the time from the strobe to the first instruction of the job: shortest, median and
//! longest.

use std::env;
use std::process::ExitCode;

use punctual::Config;

use punctual_lab::{Latencies, Result, two};

#[cfg(target_arch = "x86_64")]
use port::Port;

const USAGE: &str = "uio|kernel COUNT, as in uio 100";

#[cfg(target_arch = "x86_64")]
fn main() -> Result<ExitCode> {
    let (form, count): (String, u32) = two(USAGE, env::args().skip(1))?;
    let (port, source) = match form.as_str() {
        "uio" => Port::of_uio()?,
        "kernel" => Port::of_kernel()?,
        _ => return Err(format!("`{form}` does not fit; the arguments are {USAGE}").into()),
    };
    let report = app::run(Config::from_env(), port, source, Latencies::of(count)?)?;
    println!("{} after {} bytes", report.outcome, report.task("sent").map_or(0, |task| task.jobs));
    Ok(ExitCode::from(report.exit_code()))
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("only a PC has such a port");
    std::process::exit(2);
}

#[cfg(target_arch = "x86_64")]
mod port {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
    use std::os::unix::fs::OpenOptionsExt;

    use punctual::io::ports::Ports;
    use punctual::io::uio::Uio;

    use punctual_lab::Result;

    /// Registers of the standard parallel port, relative to the first.
    const DATA: u16 = 0;
    const STATUS: u16 = 1;
    const CONTROL: u16 = 2;
    /// Bits of the control register: a printer reads the data at the end of a strobe, and
    /// interrupts.
    const STROBE: u8 = 1 << 0;
    const NO_RESET: u8 = 1 << 2;
    const SELECTED: u8 = 1 << 3;
    const INTERRUPTS: u8 = 1 << 4;

    /// Requests of `<linux/ppdev.h>`.
    const CLAIM: libc::Ioctl = 0x708b;
    const WRITE_CONTROL: libc::Ioctl = 0x4001_7084;
    const WRITE_DATA: libc::Ioctl = 0x4001_7086;
    const READ_DATA: libc::Ioctl = 0x8001_7085;
    const READ_STATUS: libc::Ioctl = 0x8001_7081;
    const TAKE_INTERRUPTS: libc::Ioctl = 0x8004_7093;

    /// The sender.
    pub(crate) enum Port {
        Ports(Ports),
        Kernel(File),
    }

    /// The source of interrupts.
    pub(crate) enum Source {
        Uio(Uio),
        Kernel(File),
    }

    impl Port {
        /// Returns the I/O ports, and the device that the lab's module provides for their
        /// interrupt.
        pub(crate) fn of_uio() -> Result<(Self, Source)> {
            let uio = Uio::named("punctual-parallel")?;
            let range = uio.ports()?.into_iter().next().ok_or("the device has no ports")?;
            // SAFETY: the module has claimed the ports, and a parallel port writes to no memory.
            let ports = unsafe { Ports::new(range.first, range.count) }?;
            Ok((Self::Ports(ports), Source::Uio(uio)))
        }

        /// Returns the port and the source of the kernel's drivers, `parport_pc` and `ppdev`.
        pub(crate) fn of_kernel() -> Result<(Self, Source)> {
            let path = "/dev/parport0";
            let port = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(path)
                .map_err(|error| format!("{path}: {error}; load parport_pc and ppdev"))?;
            request(&port, CLAIM, &mut [])?;
            // The driver may have triggered an interrupt while probing: a missed edge is not
            // repeated.
            request(&port, READ_STATUS, &mut [0])?;
            request(&port, TAKE_INTERRUPTS, &mut [0; 4])?;
            Ok((Self::Kernel(port.try_clone()?), Source::Kernel(port)))
        }

        /// Sends a byte; the last step triggers the interrupt.
        pub(crate) fn send(&self, byte: u8) -> io::Result<()> {
            let idle = NO_RESET | SELECTED | INTERRUPTS;
            match self {
                Self::Ports(ports) => {
                    let port = ports.here().map_err(io::Error::other)?;
                    port.write_u8(DATA, byte);
                    port.write_u8(CONTROL, idle | STROBE);
                    port.write_u8(CONTROL, idle);
                }
                // The driver reserves the interrupt bit for itself.
                Self::Kernel(port) => {
                    request(port, WRITE_DATA, &mut [byte])?;
                    request(port, WRITE_CONTROL, &mut [NO_RESET | SELECTED | STROBE])?;
                    request(port, WRITE_CONTROL, &mut [NO_RESET | SELECTED])?;
                }
            }
            Ok(())
        }

        /// Reads back the sent byte, which acknowledges the interrupt.
        pub(crate) fn receive(&self) -> io::Result<u8> {
            match self {
                Self::Ports(ports) => {
                    let port = ports.here().map_err(io::Error::other)?;
                    let _ = port.read_u8(STATUS);
                    Ok(port.read_u8(DATA))
                }
                Self::Kernel(port) => {
                    let mut byte = [0];
                    request(port, READ_STATUS, &mut byte)?;
                    request(port, READ_DATA, &mut byte)?;
                    Ok(byte[0])
                }
            }
        }
    }

    impl Source {
        /// Returns the number of new interrupts.
        pub(crate) fn take(&mut self) -> io::Result<u32> {
            match self {
                Self::Uio(uio) => Ok(uio.take()?.map_or(0, |interrupts| interrupts.new)),
                Self::Kernel(port) => {
                    let mut count = [0; 4];
                    request(port, TAKE_INTERRUPTS, &mut count)?;
                    Ok(u32::from_ne_bytes(count))
                }
            }
        }
    }

    impl AsFd for Source {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self {
                Self::Uio(uio) => uio.as_fd(),
                Self::Kernel(port) => port.as_fd(),
            }
        }
    }

    fn request(port: &File, number: libc::Ioctl, bytes: &mut [u8]) -> io::Result<()> {
        // SAFETY: each request reads or writes as many bytes as its callers pass, according to its
        // number.
        let status = unsafe { libc::ioctl(port.as_raw_fd(), number, bytes.as_mut_ptr()) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(target_arch = "x86_64")]
#[punctual::app]
mod app {
    use punctual::Instant;
    use punctual::prelude::*;
    use punctual_lab::Latencies;

    use super::port::{Port, Source};

    #[shared]
    struct Shared {
        port: Port,
        /// The time at which the byte without an interrupt so far was sent.
        begun: Option<Instant>,
    }

    #[local]
    struct Local {
        source: Source,
        latencies: Latencies,
        byte: u8,
        expected: u8,
    }

    #[init]
    fn init(_: init::Context, port: Port, source: Source, latencies: Latencies) -> (Shared, Local) {
        (Shared { port, begun: None }, Local { source, latencies, byte: 0, expected: 0 })
    }

    #[task(priority = 1, period = 1.millis(), local = [byte], shared = [&port, begun])]
    fn send(mut cx: send::Context) {
        // A line that is already high has no edge: one at a time.
        let is_next = cx.shared.begun.lock(|begun| {
            let is_next = begun.is_none();
            begun.get_or_insert_with(punctual::now);
            is_next
        });
        if !is_next {
            return;
        }
        *cx.local.byte = cx.local.byte.wrapping_add(1);
        cx.shared.port.send(*cx.local.byte).expect("the port is there");
    }

    #[task(binds = source, priority = 3, local = [source, latencies, expected], shared = [&port, begun])]
    fn sent(mut cx: sent::Context) {
        let now = punctual::now();
        assert_eq!(
            cx.local.source.take().expect("the port is there"),
            1,
            "interrupts are missing, or came by themselves"
        );
        *cx.local.expected = cx.local.expected.wrapping_add(1);
        assert_eq!(cx.shared.port.receive().expect("the port is there"), *cx.local.expected, "another byte");
        let begun = cx.shared.begun.lock(Option::take).expect("a byte was sent");
        cx.local.latencies.add(now - begun);
        if let Some(line) = cx.local.latencies.all() {
            println!("{line}");
            punctual::shutdown();
        }
    }
}
