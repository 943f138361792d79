//! A complete driver in user space: a task is bound to the interrupt of a PCI device whose
//! registers are mapped into the process, QEMU's `edu`, which inverts values written to one
//! register and interrupts on writes to another.
//!
//!     pci_interrupts COUNT
//!
//! Prints the time from the write to the first instruction of the job: shortest, median and
//! longest.

use std::env;
use std::process::ExitCode;

use punctual::Config;
use punctual::io::pci::Function;
use punctual::io::region::Registers;
use punctual::io::safe_mmio::fields::{ReadPure, ReadPureWrite, WriteOnly};
use punctual::io::safe_mmio::{field, field_shared};

use punctual_lab::{Latencies, Result, end, word};

const USAGE: &str = "COUNT, as in 100";

/// According to QEMU's `docs/specs/edu.rst`.
const VENDOR: u16 = 0x1234;
const DEVICE: u16 = 0x11e8;
const IDENTIFICATION: u32 = 0x0100_00ed;

/// The registers up to the one that acknowledges an interrupt.
#[repr(C)]
pub struct Edu {
    identification: ReadPure<u32>,
    liveness: ReadPureWrite<u32>,
    _factorial: [u32; 7],
    interrupts: ReadPure<u32>,
    _reserved: [u32; 14],
    raise: WriteOnly<u32>,
    acknowledge: WriteOnly<u32>,
}

const _: () = {
    assert!(std::mem::offset_of!(Edu, interrupts) == 0x24);
    assert!(std::mem::offset_of!(Edu, raise) == 0x60);
    assert!(std::mem::offset_of!(Edu, acknowledge) == 0x64);
};

fn main() -> Result<ExitCode> {
    let mut words = env::args().skip(1);
    let count: u32 = word(USAGE, &mut words)?;
    end(USAGE, words)?;

    let function = Function::find(VENDOR, DEVICE)?;
    // SAFETY: the device accesses memory only by its DMA engine, whose registers are not in `Edu`.
    let region = unsafe { function.map(0) }?;
    let mut edu: Registers<Edu> = region.registers(0)?;
    let mut all = edu.get();
    let identification = field_shared!(all, identification).read();
    if identification != IDENTIFICATION {
        return Err(
            format!("the device identifies itself as {identification:#x}, not {IDENTIFICATION:#x}").into()
        );
    }
    field!(all, liveness).write(0x0f0f_1234);
    let inverted = field_shared!(all, liveness).read();
    println!("the device inverts: {inverted:#x}");

    let uio = function.uio()?;
    function.unmask()?;
    let report = app::run(Config::from_env(), (function, uio, edu), Latencies::of(count)?)?;
    println!("{} after {} interrupts", report.outcome, report.task("answer").map_or(0, |task| task.jobs));
    Ok(ExitCode::from(report.exit_code()))
}

#[punctual::app]
mod app {
    use punctual::Instant;
    use punctual::io::pci::Function;
    use punctual::io::region::Registers;
    use punctual::io::safe_mmio::{field, field_shared};
    use punctual::io::uio::Uio;
    use punctual::prelude::*;
    use punctual_lab::Latencies;

    use super::Edu;

    #[shared]
    struct Shared {
        edu: Registers<Edu>,
        /// The time at which the unanswered interrupt was raised.
        raised: Option<Instant>,
    }

    #[local]
    struct Local {
        uio: Uio,
        function: Function,
        latencies: Latencies,
    }

    #[init]
    fn init(
        _: init::Context,
        device: (Function, Uio, Registers<Edu>),
        latencies: Latencies,
    ) -> (Shared, Local) {
        let (function, uio, edu) = device;
        (Shared { edu, raised: None }, Local { uio, function, latencies })
    }

    #[task(priority = 1, period = 1.millis(), shared = [edu, raised])]
    fn raise(cx: raise::Context) {
        (cx.shared.raised, cx.shared.edu).lock(|raised, edu| {
            if raised.is_some() {
                return;
            }
            *raised = Some(punctual::now());
            let mut all = edu.get();
            field!(all, raise).write(1);
        });
    }

    #[task(binds = uio, priority = 3, local = [uio, function, latencies], shared = [edu, raised])]
    fn answer(cx: answer::Context) {
        let now = punctual::now();
        let interrupts = cx.local.uio.take().expect("the device is there").expect("it has interrupted");
        assert_eq!(interrupts.new, 1, "an interrupt was not seen");
        (cx.shared.raised, cx.shared.edu).lock(|raised, edu| {
            let mut all = edu.get();
            assert_eq!(
                field_shared!(all, interrupts).read(),
                1,
                "another interrupt than the one that was raised"
            );
            field!(all, acknowledge).write(1);
            cx.local.latencies.add(now - raised.take().expect("it was raised"));
        });
        cx.local.function.unmask().expect("the function is there");
        if let Some(line) = cx.local.latencies.all() {
            println!("{line}");
            punctual::shutdown();
        }
    }
}
