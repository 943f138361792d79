//! The benchmark of real-time operating systems by Zhang and Timmerman, as run by Cunningham, for
//! `punctual-kernel`: its operations, delayed execution, pulses at a pin, and its rules. Prints the
//! output of `punctual bench --json`, and its checksum.
//!
//! json: punctual-bench
//! sample: one board per instruction set
#![no_std]
#![no_main]

use programs::bench::Report;
use programs::kernel_bench::{latency, operations, rules};
use programs::pins;

punctual_bare::entry!(main);

fn main() -> ! {
    punctual_kernel_bare::init();
    let mut report = Report::begin();
    operations::measure(&mut report);
    rules::check(&mut report);
    latency::measure(&mut report, &mut pins::stimulus_and_response());
    report.end();
    punctual_bare::exit(0)
}
