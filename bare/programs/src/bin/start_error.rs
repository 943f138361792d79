//! An app that fails to start leaves no trace: it does not change how interrupts of its tasks are
//! handled.
//!
//! needs: virt, bcm2836-interrupts: a core is missing, or all interrupts are delivered to the first
#![no_std]
#![no_main]

use punctual::Config;
use punctual_bare::println;

punctual_bare::entry!(main);

fn main() -> ! {
    for _ in 0..2 {
        match needs_more::run(Config::new()) {
            Ok(_) => println!("it has run"),
            Err(error) => println!("{error}"),
        }
        match runs::run(Config::new()) {
            Ok(report) => println!("interrupts that no task binds: {}", report.unbound_interrupts),
            Err(error) => println!("{error}"),
        }
    }
    punctual_bare::exit(0)
}

/// Needs a core for its second partition, which QEMU's `virt` with one core lacks. The Raspberry Pi
/// 2 and 3 have that core, but route interrupts of peripherals to the first.
#[punctual::app(main = false, partitions = [first, second])]
mod needs_more {
    use punctual_bare::println;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        println!("init of an app that cannot start");
        (Shared {}, Local {})
    }

    #[task(binds = UART0, core = first)]
    fn line(_: line::Context) {
        println!("a job of an app that does not run");
    }

    #[cfg(feature = "raspberry-pi")]
    #[task(binds = GPIO0, core = second)]
    fn pins(_: pins::Context) {}

    #[cfg(not(feature = "raspberry-pi"))]
    #[task(binds = RTC, core = second)]
    fn clock(_: clock::Context) {}
}

/// Raises the interrupt that the other app binds.
#[punctual::app(main = false)]
mod runs {
    use punctual_bare::{console, interrupt, println};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        raise::spawn().expect("nothing else spawns it");
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    fn raise(_: raise::Context) {
        println!("an app that runs");
        interrupt::enable(interrupt::UART0);
        // Data was sent, so the interrupt is raised at once.
        console::interrupt_on_transmit(true);
        console::interrupt_on_transmit(false);
        punctual::shutdown();
    }
}
