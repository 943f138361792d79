//! The benchmark of real-time operating systems by Zhang and Timmerman, as run by Cunningham, for
//! `punctual-kernel`: its operations, delayed execution, pulses at a pin, and its rules. Prints the
//! output of `punctual bench --json`.
//!
//! json: punctual-bench
//! thorough: raspi2b, raspi3b, raspi4b
#![no_std]
#![no_main]

use programs::bench::Report;
use programs::kernel_bench::{latency, operations, rules};

punctual_bare::entry!(main);

fn main() -> ! {
    punctual_kernel_bare::init();
    let mut report = Report::begin();
    operations::measure(&mut report);
    rules::check(&mut report);
    latency::measure(&mut report);
    report.end();
    punctual_bare::exit(0)
}
