//! Prints measurements in the format of `punctual bench --json`, each as soon as it is available,
//! and then a line with the number of its bytes and their CRC-32: a serial line may lose some.
//!
//! `docs/bench-schema.json` describes the format. Times are in nanoseconds.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use punctual_bare::board;

use crate::cycles;

/// The bytes printed so far, without carriage returns, and their CRC-32 before its final inversion.
static BYTES: AtomicUsize = AtomicUsize::new(0);
static CRC: AtomicU32 = AtomicU32::new(u32::MAX);

/// The console; counts what it prints.
struct Counted;

impl Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let step = |crc: u32, byte: u8| {
            (0..8)
                .fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 })
        };
        CRC.store(text.bytes().fold(CRC.load(Ordering::Relaxed), step), Ordering::Relaxed);
        BYTES.fetch_add(text.len(), Ordering::Relaxed);
        punctual_bare::print!("{text}");
        Ok(())
    }
}

macro_rules! print {
    ($($arguments:tt)*) => {{
        // The console does not fail.
        let _ = write!(Counted, $($arguments)*);
    }};
}

macro_rules! println {
    ($($arguments:tt)*) => {{
        // The console does not fail.
        let _ = writeln!(Counted, $($arguments)*);
    }};
}

/// Number of samples in a row.
pub const SAMPLES_PER_ROW: usize = 4096;

/// The samples of the current row.
static SAMPLES: [AtomicU32; SAMPLES_PER_ROW] = [const { AtomicU32::new(0) }; SAMPLES_PER_ROW];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Adds a sample, in cycles of the core, if there is room.
#[inline]
pub fn record(cycles: u32) {
    if let Some(place) = SAMPLES.get(COUNT.fetch_add(1, Ordering::Relaxed)) {
        place.store(cycles, Ordering::Relaxed);
    }
}

/// Returns the number of samples recorded since the last row.
#[inline]
pub fn recorded() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// Discards the samples and starts a new row.
pub fn forget() {
    COUNT.store(0, Ordering::Relaxed);
}

/// A report that is being printed.
#[derive(Debug)]
pub struct Report {
    began: u64,
    has_suite: bool,
    /// The next item is the first of its list.
    is_first: bool,
}

/// Description of a row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Suite and operation, as in the rows of `punctual bench`, so that both can be compared.
    pub slug: &'a str,
    /// The operation in words.
    pub operation: &'a str,
    /// `idle`, if `punctual bench` reports this condition.
    pub condition: Option<&'a str>,
    /// The requested time in nanoseconds.
    pub nominal: Option<u32>,
}

/// A property of the board.
#[derive(Clone, Copy)]
pub struct Property<'a> {
    /// Identifier.
    pub slug: &'a str,
    /// The property in words.
    pub rule: &'a str,
    /// The expected observation.
    pub expected: &'a dyn fmt::Display,
}

impl fmt::Debug for Property<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug)
    }
}

/// A rule and its observation.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// Identifier, as in the checks of `punctual bench`.
    pub slug: &'a str,
    /// The rule in words.
    pub rule: &'a str,
    /// The observation that the rule requires.
    pub expected: &'a str,
    /// The observation of each run if the rule holds, otherwise that of the first run that violates
    /// it.
    pub observed: &'a str,
    /// Number of runs.
    pub runs: usize,
}

const SUBJECT: &str = "punctual-kernel";

impl Report {
    /// Starts a report.
    pub fn begin() -> Self {
        cycles::enable();
        for _ in 0..SAMPLES_PER_ROW {
            let before = cycles::count();
            record(cycles::count().wrapping_sub(before));
        }
        println!("{{\"format\": \"punctual-bench\", \"version\": 1, \"interrupted\": false,");
        // No clock here provides the date.
        println!("\"started\": \"1970-01-01T00:00:00Z\",");
        println!(
            "\"settings\": {{\"samples\": {SAMPLES_PER_ROW}, \"quick\": false, \"cpu\": 0, \"other_cpu\": null, \"hourglass_s\": 1, \
             \"load\": \"own\"}},"
        );
        println!("\"machine\": {{\"kernel\": \"punctual-kernel {}\",", env!("CARGO_PKG_VERSION"));
        println!("\"preempt_rt\": false, \"architecture\": \"{}\",", architecture());
        let is_emulated = cfg!(feature = "semihosting");
        let hypervisor = if is_emulated { "\"QEMU\"" } else { "null" };
        println!("\"cpu_model\": \"{}\", \"cpus\": 1, \"hypervisor\": {hypervisor},", board::NAME);
        let step = cycles::frequency().map_or(1.0, |hertz| 1e9 / f64::from(hertz));
        println!(
            "\"clock_source\": \"\", \"clock\": \"PMCCNTR\", \"clock_step_ns\": {step:.3}, \"isolated_cpus\": \"0\","
        );
        println!(
            "\"tickless_cpus\": \"0\", \"governor\": \"\", \"rt_throttling\": \"off\", \"fifo_refused\": null,"
        );
        print!("\"notes\": [\"{}\"", board::Conditions);
        if is_emulated {
            print!(
                ", \"In QEMU on counted time each instruction takes a nanosecond, and caches and memory take none: a time \
                 here is a number of instructions.\""
            );
        } else if cycles::frequency().is_none() {
            print!(", \"The frequency of the cores is unknown: a time here is a number of cycles.\"");
        }
        println!("]}},");
        print!("\"overhead\": ");
        print_distribution();
        println!(",\n\"suites\": [");
        Self { began: punctual_bare::time::now(), has_suite: false, is_first: true }
    }

    /// Starts a suite with rows.
    pub fn suite(&mut self, name: &str, title: &str) {
        if self.has_suite {
            self.end_suite();
            println!(",");
        }
        print!("{{\"name\": \"{name}\", \"title\": \"{title}\", \"took_s\": 0, \"notes\": [],\n\"rows\": [");
        (self.has_suite, self.is_first) = (true, true);
    }

    /// Switches the suite from rows to checks.
    pub fn checks(&mut self) {
        print!("],\n\"checks\": [");
        self.is_first = true;
    }

    fn end_suite(&mut self) {
        print!("]}}");
    }

    fn next(&mut self) {
        println!("{}", if self.is_first { "" } else { "," });
        self.is_first = false;
    }

    /// Prints a row with the recorded samples.
    pub fn row(&mut self, row: &Row<'_>) {
        self.open_row(row);
        print_distribution();
        print!(", \"why\": []}}");
    }

    /// Prints a row that was not measured.
    pub fn unmeasured(&mut self, row: &Row<'_>, why: &str) {
        self.open_row(row);
        print!("null, \"why\": [\"{why}\"]}}");
    }

    fn open_row(&mut self, row: &Row<'_>) {
        self.next();
        print!("{{\"id\": \"{}/kernel", row.slug);
        match row.condition {
            Some(condition) => print!("/{condition}\", \"condition\": \"{condition}\", "),
            None => print!("\", \"condition\": null, "),
        }
        print!(
            "\"operation\": \"{}\", \"subject\": \"{SUBJECT}\", \"operations_per_sample\": 1, ",
            row.operation
        );
        match row.nominal {
            Some(nominal) => print!("\"nominal_ns\": {nominal}, "),
            None => print!("\"nominal_ns\": null, "),
        }
        print!("\"quantities\": [], \"causes\": [], \"published\": [], \"figures\": ");
    }

    /// Prints a check.
    pub fn check(&mut self, check: &Check<'_>) {
        self.next();
        let Check { slug, rule, expected, observed, runs } = check;
        let verdict = if expected == observed { "passed" } else { "failed" };
        print!("{{\"id\": \"behavior/{slug}/kernel\", \"rule\": \"{rule}\", \"subject\": \"{SUBJECT}\", ");
        print!("\"verdict\": \"{verdict}\", \"expected\": \"{expected}\", ");
        print!("\"observed\": \"{observed} (in each of {runs} runs)\", \"why\": []}}");
    }

    /// Prints the check of a property of the board: the observation and whether it is as expected,
    /// or the reason for a missing observation.
    pub fn property(&mut self, property: &Property<'_>, observed: Result<(&dyn fmt::Display, bool), &str>) {
        self.next();
        let Property { slug, rule, expected } = property;
        print!("{{\"id\": \"board/{slug}\", \"rule\": \"{rule}\", \"subject\": \"{}\", ", board::NAME);
        print!("\"expected\": \"{expected}\", ");
        match observed {
            Ok((observed, holds)) => {
                let verdict = if holds { "passed" } else { "failed" };
                print!("\"verdict\": \"{verdict}\", \"observed\": \"{observed}\", \"why\": []}}");
            }
            Err(why) => {
                print!("\"verdict\": \"not-meaningful\", \"observed\": \"nothing\", \"why\": [\"{why}\"]}}");
            }
        }
    }

    /// Ends the report.
    pub fn end(mut self) {
        self.end_suite();
        let took = punctual_bare::time::now() - self.began;
        println!("],\n\"took_s\": {}.{:03}}}", took / 1_000_000_000, took / 1_000_000 % 1000);
        let (bytes, crc) = (BYTES.load(Ordering::Relaxed), !CRC.load(Ordering::Relaxed));
        punctual_bare::println!("checksum: {bytes} bytes, CRC-32 {crc:08x}");
    }
}

/// Converts cycles to nanoseconds; leaves them as they are if the frequency is unknown.
fn nanos(cycles: u32) -> u32 {
    match cycles::frequency() {
        Some(hertz) => (u64::from(cycles) * 1_000_000_000 / u64::from(hertz)) as u32,
        None => cycles,
    }
}

fn architecture() -> &'static str {
    if cfg!(target_arch = "arm") { "arm" } else { "aarch64" }
}

/// Prints the distribution of the recorded samples and discards them.
fn print_distribution() {
    let mut values = [0; SAMPLES_PER_ROW];
    let count = COUNT.swap(0, Ordering::Relaxed).min(SAMPLES_PER_ROW);
    for (value, sample) in values.iter_mut().zip(&SAMPLES[..count]) {
        *value = nanos(sample.load(Ordering::Relaxed));
    }
    let values = &mut values[..count];
    values.sort_unstable();
    let [Some(&least), Some(&most)] = [values.first(), values.last()] else {
        print!("null");
        return;
    };
    let percentile = |percent: usize| values[(count * percent).div_ceil(100).max(1) - 1];
    let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count as f64;
    let squares =
        values.iter().map(|&value| (f64::from(value) - mean) * (f64::from(value) - mean)).sum::<f64>();
    print!("{{\"samples\": {count}, \"max_ns\": {most}, \"p99_ns\": {}, ", percentile(99));
    print!("\"p75_ns\": {}, \"p50_ns\": {}, ", percentile(75), percentile(50));
    print!("\"p25_ns\": {}, \"min_ns\": {least}, ", percentile(25));
    print!("\"mean_ns\": {mean:.3}, \"sigma_ns\": {:.3}, \"buckets\": [", root(squares / count as f64));
    print_buckets(values);
    print!("]}}");
}

/// Prints ten buckets per decade and omits empty ones.
fn print_buckets(values: &[u32]) {
    /// Powers of the tenth root of ten, in thousandths.
    const UPPER: [u64; 10] = [1000, 1259, 1585, 1995, 2512, 3162, 3981, 5012, 6310, 7943];
    let mut rest = values;
    let mut scale = 1;
    while !rest.is_empty() {
        for upper in UPPER {
            let thousandths = upper * scale;
            let count = rest.iter().take_while(|&&value| u64::from(value) * 1000 <= thousandths).count();
            if count > 0 {
                let comma = if rest.len() < values.len() { ", " } else { "" };
                let (whole, part) = (thousandths / 1000, thousandths % 1000);
                print!("{comma}{{\"upper_ns\": {whole}.{part:03}, \"count\": {count}}}");
                rest = &rest[count..];
            }
        }
        scale *= 10;
    }
}

/// Computes the square root by Newton's method, because `core` lacks it.
fn root(square: f64) -> f64 {
    let mut root = square.max(1.0);
    for _ in 0..100 {
        root = (root + square / root) / 2.0;
    }
    if square > 0.0 { root } else { 0.0 }
}
