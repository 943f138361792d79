//! Figures from the literature, as printed there: measured on other machines and other kernels, not
//! by this crate.
//!
//! * C. Cunningham, *Making a Real-Time Operating System for the Raspberry Pi 2B*, Arizona State
//!   University, 2022: tables 2 and 5 (operations), 3 (pulses), 4 (delayed execution). Raspbian
//!   with FIFO policies, and the author's system Jobbed.
//! * J. K. Balciunas, *Real-Time Interrupt-driven Concurrency (RTIC) for Modern Application
//!   Processors*, University of Twente, 2021, section 6.1: edges of a GPIO line, and 6.2:
//!   `linux-rtic`, on a Raspberry Pi 4 with PREEMPT_RT.

use crate::model::Published;

const CUNNINGHAM: &str = "Cunningham 2022, Raspberry Pi 2B";
const BALCIUNAS: &str = "Balciunas 2021, section 6.2, Raspberry Pi 4, PREEMPT_RT";
const RASPBIAN: &str = "Raspbian";
const JOBBED: &str = "Jobbed";
const JOBBED_CYCLES: &str = "Jobbed, cycle counter";
const LINUX_RTIC: &str = "linux-rtic";

/// Mean, σ, maximum in ns.
type Line = (f64, f64, f64);

/// Returns a line of tables 2 and 5: Linux and Jobbed in table 2, Jobbed in table 5. In table 5 the
/// columns for Linux repeat those of table 2, except for the σ of semaphore V, 124000 there.
fn operation(linux: Line, jobbed: Line, jobbed_cycles: Line) -> Vec<Published> {
    let line = |table: &str, system: &str, (mean, sigma, max): Line| Published {
        source: format!("{CUNNINGHAM}, table {table}"),
        system: system.into(),
        mean_ns: mean,
        sigma_ns: Some(sigma),
        min_ns: None,
        max_ns: Some(max),
    };
    vec![line("2", RASPBIAN, linux), line("2", JOBBED, jobbed), line("5", JOBBED_CYCLES, jobbed_cycles)]
}

/// Returns the lines of tables 2 and 5, by the names of the rows there.
pub(crate) fn rtos(name: &str) -> Vec<Published> {
    match name {
        "Tracing" => operation((238., 160., 2920.), (287., 452., 1000.), (77.9, 2.13, 157.)),
        "Thread Creation (L)" => {
            operation((96_600., 26_100., 825_000.), (1880., 967., 5000.), (744., 48.1, 2270.))
        }
        "Thread Creation (H)" => {
            operation((221_000., 56_500., 1_470_000.), (2660., 887., 7000.), (521., 45.4, 3100.))
        }
        "Thread Switch" => {
            operation((15_400., 625_000., 40_000_000.), (1420., 742., 4000.), (682., 40.9, 2150.))
        }
        "Mutex Create" => operation((317., 1040., 41_400.), (561., 595., 3000.), (298., 48.4, 1300.)),
        "Mutex Destroy" => operation((321., 1300., 45_100.), (576., 585., 3000.), (257., 20.5, 1290.)),
        "Mutex Lock (C)" => {
            operation((23_700., 6950., 206_000.), (4910., 1020., 9000.), (2820., 33.3, 4430.))
        }
        "Mutex Lock (NC)" => operation((365., 309., 8440.), (798., 597., 3000.), (422., 61.0, 1400.)),
        "Mutex Unlock" => operation((400., 782., 50_100.), (1370., 572., 4000.), (430., 3.96, 540.)),
        "Semaphore P" => operation((391., 1550., 95_800.), (427., 495., 1000.), (179., 3.52, 334.)),
        "Semaphore V" => operation((2550., 125_000., 7_860_000.), (768., 421., 1000.), (421., 4.32, 1080.)),
        "Semaphore V (NZ)" => operation((313., 223., 11_700.), (439., 496., 1000.), (179., 3.05, 190.)),
        _ => Vec::new(),
    }
}

/// Returns the lines for a row of a board's run, by its identifier.
pub(crate) fn of_row(id: &str) -> Vec<Published> {
    let mut parts = id.split('/');
    let (suite, slug) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let number = |prefix: &str| slug.strip_prefix(prefix)?.parse().ok();
    let name = match (suite, slug) {
        ("rtos", "tracing") => "Tracing",
        ("rtos", "create-lower") => "Thread Creation (L)",
        ("rtos", "create-higher") => "Thread Creation (H)",
        ("rtos", "switch") => "Thread Switch",
        ("rtos", "mutex-create") => "Mutex Create",
        ("rtos", "mutex-destroy") => "Mutex Destroy",
        ("rtos", "lock") => "Mutex Lock (NC)",
        ("rtos", "lock-contended") => "Mutex Lock (C)",
        ("rtos", "unlock") => "Mutex Unlock",
        ("rtos", "semaphore-p") => "Semaphore P",
        ("rtos", "semaphore-v") => "Semaphore V",
        ("rtos", "semaphore-v-nz") => "Semaphore V (NZ)",
        ("latency", _) => {
            return number("delay-").map(delay).or_else(|| number("pulse-").map(pulse)).unwrap_or_default();
        }
        _ => return Vec::new(),
    };
    rtos(name)
}

/// Mean, σ, minimum, maximum in µs.
type Span = (f64, f64, f64, f64);

fn spans(table: &str, linux: Span, jobbed: Span) -> Vec<Published> {
    let line = |system: &str, (mean, sigma, min, max): Span| Published {
        source: format!("{CUNNINGHAM}, table {table}"),
        system: system.into(),
        mean_ns: mean * 1e3,
        sigma_ns: Some(sigma * 1e3),
        min_ns: Some(min * 1e3),
        max_ns: Some(max * 1e3),
    };
    vec![line(RASPBIAN, linux), line(JOBBED, jobbed)]
}

/// Table 3: the measured pulse for this period.
pub(crate) fn pulse(period_us: u64) -> Vec<Published> {
    let (linux, jobbed) = match period_us {
        20 => ((68., 39.3, 55.7, 1230.), (25., 1., 22., 32.)),
        40 => ((67.9, 45.6, 58.1, 2240.), (45., 1., 43., 52.)),
        160 => ((167., 23.5, 76.3, 999.), (166., 2., 163., 174.)),
        1000 => ((1020., 359., 620., 24_000.), (1010., 1., 1000., 1020.)),
        2000 => ((2040., 865., 255., 57_100.), (2030., 1., 2010., 2040.)),
        _ => return Vec::new(),
    };
    spans("3", linux, jobbed)
}

/// Table 4: the measured delay for this requested one.
pub(crate) fn delay(delay_us: u64) -> Vec<Published> {
    let (linux, jobbed) = match delay_us {
        10 => ((690., 89.2, 610., 1560.), (10.3, 0.925, 8., 14.)),
        20 => ((464., 90.7, 383., 1410.), (20.4, 0.975, 18., 24.)),
        50 => ((729., 79.3, 642., 1770.), (50.4, 0.963, 48., 54.)),
        100 => ((781., 76.0, 697., 1600.), (100., 0.853, 98., 104.)),
        200 => ((897., 160., 800., 9770.), (200., 0.789, 198., 204.)),
        500 => ((1330., 98.5, 1130., 2150.), (500., 0.935, 498., 504.)),
        1_000 => ((1860., 124., 1640., 2840.), (1000., 0.896, 998., 1000.)),
        5_000 => ((6010., 178., 5670., 14_800.), (5000., 0.875, 5000., 5000.)),
        10_000 => ((11_000., 122., 10_700., 12_300.), (10_000., 0.915, 10_000., 10_000.)),
        _ => return Vec::new(),
    };
    spans("4", linux, jobbed)
}

/// The measurements of section 6.2, which are means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rtic {
    SameLevel,
    LevelsOneCpu,
    LevelsTwoCpus,
    Lock,
    Unlock,
    ContendedUnlock,
}

/// Section 6.2 of Balciunas.
pub(crate) fn rtic(what: Rtic) -> Vec<Published> {
    let mean_ns = match what {
        Rtic::SameLevel => 394.0,
        Rtic::LevelsOneCpu => 6480.0,
        Rtic::LevelsTwoCpus => 9890.0,
        Rtic::Lock => 309.0,
        Rtic::Unlock => 171.0,
        Rtic::ContendedUnlock => 5430.0,
    };
    vec![Published {
        source: BALCIUNAS.into(),
        system: LINUX_RTIC.into(),
        mean_ns,
        sigma_ns: None,
        min_ns: None,
        max_ns: None,
    }]
}

/// Section 6.1 of Balciunas: from the edge of a GPIO line to the response at another.
pub(crate) fn edges() -> Vec<Published> {
    let line = |system: &str, mean_us: f64, max_us: Option<f64>| Published {
        source:
            "Balciunas 2021, section 6.1, Raspberry Pi 4, PREEMPT_RT, with the pin and the way there and back"
                .into(),
        system: system.into(),
        mean_ns: mean_us * 1e3,
        sigma_ns: None,
        min_ns: None,
        max_ns: max_us.map(|us| us * 1e3),
    };
    vec![
        line("bare metal (caches thrashed: almost 2 µs at most)", 0.8, Some(0.9)),
        line("kernel module, not threaded", 2.0, Some(30.0)),
        line("kernel module, threaded", 9.0, None),
        line("user space (gpiod)", 20.0, None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_lines_of_a_row_of_a_board() {
        assert_eq!(of_row("rtos/switch/kernel"), rtos("Thread Switch"));
        assert_eq!(of_row("latency/delay-50/kernel/idle"), delay(50));
        assert_eq!(of_row("latency/pulse-160/kernel/idle"), pulse(160));
        for unknown in ["rtos/hand-over/kernel", "latency/delay-x/kernel", "board/memory", ""] {
            assert!(of_row(unknown).is_empty(), "{unknown}");
        }
    }

    #[test]
    fn names_position_in_each_error() {
        let all = rtos("Thread Switch").into_iter().chain(pulse(20)).chain(delay(10_000));
        for line in all.chain(rtic(Rtic::SameLevel)) {
            assert!(line.source.contains("20") && !line.system.is_empty() && line.mean_ns > 0.0, "{line:?}");
        }
        assert_eq!(
            edges().iter().map(|line| line.mean_ns).collect::<Vec<_>>(),
            [800., 2000., 9000., 20_000.]
        );
        assert_eq!(rtos("Semaphore V")[0].max_ns, Some(7_860_000.0));
        assert_eq!(delay(10)[0].min_ns, Some(610_000.0));
        assert!(pulse(30).is_empty());
    }
}
