//! A job panics on the first core while another runs on the second, which must stop.
//!
//! exit: 101
//! emulator: -smp 4
#![no_std]
#![no_main]

extern crate punctual_bare;

#[punctual::app(report = "never", partitions = [first, second])]
mod app {
    use programs::bystander::{Bystander, count};

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        works::spawn().expect("nothing else spawns it");
        panics::spawn().expect("nothing else spawns it");
        (Shared {}, Local {})
    }

    #[task(priority = 3, core = second)]
    fn works(_: works::Context) {
        count();
    }

    #[task(priority = 2, core = first)]
    fn panics(_: panics::Context) {
        Bystander::wait();
        panic!("a job panics, and the other core {Bystander}");
    }
}
