//! Compares the conversion of counts to nanoseconds with a division of 128 bits, at the frequencies
//! of boards and at others.
#![no_std]
#![no_main]

use punctual_bare::println;
use punctual_bare::time::Scale;

punctual_bare::entry!(main);

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_PER_YEAR: u64 = 366 * 24 * 3600;
/// Number of times that are compared, for each frequency.
const SAMPLES: u64 = 2_000;

/// Frequencies in Hz: of the Raspberry Pi 2 and 3, of the Raspberry Pi 4, of QEMU, and of other
/// boards.
const EXACT: [u64; 8] =
    [19_200_000, 54_000_000, 62_500_000, 1_000_000, 24_000_000, 25_000_000, 50_000_000, 100_000_000];
/// Frequencies that share few factors with a nanosecond.
const NEAR: [u64; 4] = [33_333_333, 13_421_773, 999_999_937, 7];

fn exact(counts: u64, frequency: u64) -> u64 {
    (u128::from(counts) * u128::from(NANOS_PER_SECOND) / u128::from(frequency)) as u64
}

/// Returns the largest difference over the given number of years, and whether time ever goes back.
fn compare(frequency: u64, years: u64) -> (u64, bool) {
    let scale = Scale::of(frequency);
    let last = years * SECONDS_PER_YEAR * frequency;
    // Around full seconds, where the remainder is 0, and evenly spaced in between.
    let (mut difference, mut goes_back) = (0, false);
    for i in 0..SAMPLES {
        let middle = last / SAMPLES * i / frequency * frequency;
        for counts in [middle.saturating_sub(1), middle, middle + 1, last / SAMPLES * i + i % 17] {
            let nanos = scale.nanos(counts);
            difference = difference.max(nanos.abs_diff(exact(counts, frequency)));
            goes_back |= scale.nanos(counts + 1) < nanos;
        }
    }
    (difference, goes_back)
}

fn main() -> ! {
    for frequency in EXACT {
        let (difference, goes_back) = compare(frequency, 6);
        println!("{frequency} Hz: at most {difference} ns from exact, goes back: {goes_back}");
    }
    for frequency in NEAR {
        let (difference, goes_back) = compare(frequency, 1);
        println!("{frequency} Hz: within 1 ns: {}, goes back: {goes_back}", difference <= 1);
    }
    punctual_bare::exit(0)
}
