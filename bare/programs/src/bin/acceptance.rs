//! The acceptance kit: everything that the owner of a board can confirm with one image. Prints the
//! output of `punctual bench --json` and its checksum: the benchmark of `kernel_bench`, and the
//! properties of the board.
//!
//! No wiring is needed. Three wires between pins of the header add checks:
//! `programs::acceptance::raspberry_pi` lists them. A check without its wire has the verdict
//! `not-meaningful` and names the wire.
//!
//! json: punctual-bench
//! emulator: -smp 4
#![no_std]
#![no_main]

use programs::acceptance::{self, Devices};
use programs::bench::Report;
use programs::kernel_bench::{latency, operations, rules};

punctual_bare::entry!(main);

fn main() -> ! {
    punctual_kernel_bare::init();
    let (devices, mut edges) = Devices::take();
    let mut report = Report::begin();
    operations::measure(&mut report);
    rules::check(&mut report);
    latency::measure(&mut report, &mut edges);
    acceptance::check(&mut report, devices);
    report.end();
    punctual_bare::exit(0)
}
