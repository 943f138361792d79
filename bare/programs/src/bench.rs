//! Results of measurements as `punctual bench --json` writes them, printed as they come.
//!
//! `docs/book/src/reference/bench-json.md` describes the format. Times are numbers of nanoseconds.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use punctual_bare::{board, print, println};

use crate::cycles;

/// How many samples a row has.
pub const SAMPLES_OF_A_ROW: usize = 4096;

/// The samples of the row that is being measured.
static SAMPLES: [AtomicU32; SAMPLES_OF_A_ROW] = [const { AtomicU32::new(0) }; SAMPLES_OF_A_ROW];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Adds a sample, if there is room.
#[inline]
pub fn record(ns: u32) {
    if let Some(place) = SAMPLES.get(COUNT.fetch_add(1, Ordering::Relaxed)) {
        place.store(ns, Ordering::Relaxed);
    }
}

/// How many have been recorded since the last row.
#[inline]
pub fn recorded() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// Begins a row anew.
pub fn forget() {
    COUNT.store(0, Ordering::Relaxed);
}

/// A run that is being printed.
#[derive(Debug)]
pub struct Report {
    began: u64,
    has_suite: bool,
    /// Whether the next thing is the first of its list.
    is_first: bool,
}

/// What a row is about.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// As in the rows of `punctual bench`, so that they stand beside each other: the suite and the operation.
    pub slug: &'a str,
    /// The same in words.
    pub operation: &'a str,
    /// `idle`, where `punctual bench` says so.
    pub condition: Option<&'a str>,
    /// What was asked for, in nanoseconds.
    pub nominal: Option<u32>,
}

/// A rule, and what was seen of it.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// As in the checks of `punctual bench`.
    pub slug: &'a str,
    /// The same in words.
    pub rule: &'a str,
    /// What has to be seen.
    pub expected: &'a str,
    /// What was seen in each run if it holds, and else in the first of which it does not.
    pub observed: &'a str,
    /// In how many runs it was looked at.
    pub runs: usize,
}

const SUBJECT: &str = "punctual-kernel";

impl Report {
    /// Begins a run.
    pub fn begin() -> Self {
        cycles::enable();
        for _ in 0..SAMPLES_OF_A_ROW {
            let before = cycles::count();
            record(cycles::count().wrapping_sub(before));
        }
        println!("{{\"format\": \"punctual-bench\", \"version\": 1, \"interrupted\": false,");
        // Nothing here knows the date.
        println!("\"started\": \"1970-01-01T00:00:00Z\",");
        println!(
            "\"settings\": {{\"samples\": {SAMPLES_OF_A_ROW}, \"quick\": false, \"cpu\": 0, \"other_cpu\": null, \"hourglass_s\": 1, \
             \"load\": \"own\"}},"
        );
        println!("\"machine\": {{\"kernel\": \"punctual-kernel {}\",", env!("CARGO_PKG_VERSION"));
        println!("\"preempt_rt\": false, \"architecture\": \"{}\",", architecture());
        println!("\"cpu_model\": \"{}\", \"cpus\": 1, \"hypervisor\": \"QEMU\",", board::NAME);
        println!(
            "\"clock_source\": \"\", \"clock\": \"PMCCNTR\", \"clock_step_ns\": 1, \"isolated_cpus\": \"0\","
        );
        println!(
            "\"tickless_cpus\": \"0\", \"governor\": \"\", \"rt_throttling\": \"off\", \"fifo_refused\": null,"
        );
        println!(
            "\"notes\": [\"In QEMU on counted time each instruction takes a nanosecond, and caches and memory take none: a time \
             here is a number of instructions.\"]}},"
        );
        print!("\"overhead\": ");
        print_distribution();
        println!(",\n\"suites\": [");
        Self { began: punctual_bare::time::now(), has_suite: false, is_first: true }
    }

    /// Begins a suite with rows.
    pub fn suite(&mut self, name: &str, title: &str) {
        if self.has_suite {
            self.end_suite();
            println!(",");
        }
        print!("{{\"name\": \"{name}\", \"title\": \"{title}\", \"took_s\": 0, \"notes\": [],\n\"rows\": [");
        (self.has_suite, self.is_first) = (true, true);
    }

    /// From here on the suite has checks.
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

    /// A row with what has been recorded.
    pub fn row(&mut self, row: &Row<'_>) {
        self.row_begins(row);
        print_distribution();
        print!(", \"why\": []}}");
    }

    /// A row that was not measured.
    pub fn unmeasured(&mut self, row: &Row<'_>, why: &str) {
        self.row_begins(row);
        print!("null, \"why\": [\"{why}\"]}}");
    }

    fn row_begins(&mut self, row: &Row<'_>) {
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

    /// A rule.
    pub fn check(&mut self, check: &Check<'_>) {
        self.next();
        let Check { slug, rule, expected, observed, runs } = check;
        let verdict = if expected == observed { "passed" } else { "failed" };
        print!("{{\"id\": \"behaviour/{slug}/kernel\", \"rule\": \"{rule}\", \"subject\": \"{SUBJECT}\", ");
        print!("\"verdict\": \"{verdict}\", \"expected\": \"{expected}\", ");
        print!("\"observed\": \"{observed} (in each of {runs} runs)\", \"why\": []}}");
    }

    /// Ends the run.
    pub fn end(mut self) {
        self.end_suite();
        let took = punctual_bare::time::now() - self.began;
        println!("],\n\"took_s\": {}.{:03}}}", took / 1_000_000_000, took / 1_000_000 % 1000);
    }
}

fn architecture() -> &'static str {
    if cfg!(target_arch = "arm") { "arm" } else { "aarch64" }
}

/// What has been recorded, which begins anew then.
fn print_distribution() {
    let mut values = [0; SAMPLES_OF_A_ROW];
    let count = COUNT.swap(0, Ordering::Relaxed).min(SAMPLES_OF_A_ROW);
    for (value, sample) in values.iter_mut().zip(&SAMPLES[..count]) {
        *value = sample.load(Ordering::Relaxed);
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

/// Ten buckets in a decade; empty ones are left out.
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

/// The square root, by Newton's method: `core` has none.
fn root(square: f64) -> f64 {
    let mut root = square.max(1.0);
    for _ in 0..100 {
        root = (root + square / root) / 2.0;
    }
    if square > 0.0 { root } else { 0.0 }
}
