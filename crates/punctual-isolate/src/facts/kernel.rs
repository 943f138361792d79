//! The kernel: its version, configuration and boot parameters.

use std::collections::BTreeMap;
use std::fmt;

use punctual_report::format::format_nanos;

use crate::tree::Tree;

/// The file with the current clock source.
pub(crate) const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The file with the real-time threads' share of each period, in µs; -1 is all of it.
pub(crate) const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
pub(crate) const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";

/// The maximum size of a kernel configuration.
const MAX_CONFIGURATION: usize = 4 << 20;

/// The options that are queried.
const OPTIONS: [&str; 18] = [
    "CONFIG_HZ",
    "CONFIG_NO_HZ_FULL",
    "CONFIG_NO_HZ_IDLE",
    "CONFIG_PREEMPT_RT",
    "CONFIG_PREEMPT",
    "CONFIG_PREEMPT_DYNAMIC",
    "CONFIG_PREEMPT_LAZY",
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_KASAN",
    "CONFIG_KCSAN",
    "CONFIG_PROVE_LOCKING",
    "CONFIG_RCU_NOCB_CPU",
    "CONFIG_RT_GROUP_SCHED",
    "CONFIG_CPUSETS",
    "CONFIG_CPU_ISOLATION",
    "CONFIG_HWLAT_TRACER",
    "CONFIG_OSNOISE_TRACER",
];

/// The kernel.
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    /// Its release, such as `6.12.9-rt1`.
    pub release: String,
    /// `true` if it is PREEMPT_RT; `None` if unknown.
    pub preempt_rt: Option<bool>,
    /// The current clock source.
    pub clock_source: Option<String>,
    /// The limits of real-time threads.
    pub throttling: Option<Throttling>,
    /// The boot parameters.
    pub parameters: Parameters,
    /// The build options, if known.
    options: Option<BTreeMap<String, String>>,
}

/// The share of a CPU that the kernel leaves to real-time threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttling {
    /// The whole CPU.
    Off,
    /// A part of each period, in µs.
    On {
        /// The time of real-time threads.
        runtime_us: u64,
        /// The period.
        period_us: u64,
    },
}

/// `off`, or the budget: `950 ms of every 1.00 s`.
impl fmt::Display for Throttling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Off => f.write_str("off"),
            Self::On { runtime_us, period_us } => {
                let [runtime, period] = [runtime_us, period_us].map(|us| format_nanos(us as f64 * 1e3));
                write!(f, "{runtime} of every {period}")
            }
        }
    }
}

impl Throttling {
    fn read(tree: &Tree) -> Option<Self> {
        let runtime: i64 = tree.number(RUNTIME)?;
        Some(match u64::try_from(runtime) {
            Ok(runtime_us) => Self::On { runtime_us, period_us: tree.number(PERIOD)? },
            Err(_) => Self::Off,
        })
    }
}

impl Kernel {
    /// Reads the configuration, the boot parameters and the settings.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let release = tree.text("/proc/sys/kernel/osrelease").unwrap_or_default();
        let options = options(tree, &release);
        let version = tree.text("/proc/version");
        // Not every PREEMPT_RT kernel has the file.
        let declared = tree.text("/sys/kernel/realtime").map(|text| text == "1");
        let preempt_rt = match declared {
            Some(true) => Some(true),
            _ => version
                .map(|version| version.contains("PREEMPT_RT") || version.contains("PREEMPT RT"))
                .or(declared),
        };
        let parameters = Parameters::parse(&tree.text("/proc/cmdline").unwrap_or_default());
        let clock_source = clock_source(tree);
        Self { release, preempt_rt, clock_source, throttling: Throttling::read(tree), parameters, options }
    }

    /// Returns an option's value; `Some("n")` if it is off, `None` if the configuration is unknown.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        debug_assert!(OPTIONS.contains(&name), "{name} is not read");
        self.options.as_ref().map(|options| options.get(name).map_or("n", String::as_str))
    }

    /// Returns the first two numbers of the version.
    #[must_use]
    pub fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.release.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

/// Returns the current clock source.
#[must_use]
pub fn clock_source(tree: &Tree) -> Option<String> {
    tree.text(CLOCK_SOURCE)
}

fn options(tree: &Tree, release: &str) -> Option<BTreeMap<String, String>> {
    // Must be a valid file name.
    let release: String = release.chars().filter(|&c| c != '/').collect();
    let unpacked = tree.bytes("/proc/config.gz").and_then(|bytes| gunzip(&bytes));
    let place = format!("/boot/config-{release}");
    let mut found = BTreeMap::new();
    let known = match unpacked {
        Some(text) => {
            let lines: Vec<&str> = text
                .lines()
                .filter(|line| line.split_once('=').is_some_and(|(name, _)| OPTIONS.contains(&name)))
                .collect();
            tree.keep(&place, &lines.join("\n"));
            let values = lines.iter().filter_map(|line| line.split_once('='));
            found.extend(values.map(|(name, value)| (name.to_owned(), value.to_owned())));
            true
        }
        None => OPTIONS.iter().fold(false, |known, name| match tree.field(&place, name) {
            Ok(value) => {
                found.extend(value.map(|value| ((*name).to_owned(), value)));
                true
            }
            Err(_) => known,
        }),
    };
    known.then_some(found)
}

/// Unpacks a gzip file (RFC 1952).
fn gunzip(bytes: &[u8]) -> Option<String> {
    let flags = *bytes.get(3).filter(|_| bytes.starts_with(&[0x1f, 0x8b, 8]))?;
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + usize::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            at += bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    let text = miniz_oxide::inflate::decompress_to_vec_with_limit(bytes.get(at..)?, MAX_CONFIGURATION);
    Some(String::from_utf8_lossy(&text.ok()?).into_owned())
}

/// The boot parameters of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, Option<String>)>);

impl Parameters {
    /// Parses a command line; blanks in double quotes do not separate parameters.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in line.trim().chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                c if c.is_whitespace() && !is_quoted => words.push(String::new()),
                c => words.last_mut().expect("the list is never empty").push(c),
            }
        }
        // The rest is for the init process.
        let words = words.into_iter().take_while(|word| word != "--").filter(|word| !word.is_empty());
        Self(
            words
                .map(|word| match word.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (word, None),
                })
                .collect(),
        )
    }

    /// Returns `true` if the parameter is present, with or without a value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| is_same(known, name))
    }

    /// Returns the effective value: that of the last parameter of this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| is_same(known, name))?.1.as_deref()
    }
}

/// The kernel does not distinguish dashes and underscores.
fn is_same(one: &str, other: &str) -> bool {
    one.replace('-', "_") == other.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_command_lines() {
        let line =
            "quiet isolcpus=domain,2 isolcpus=managed_irq,3 dyndbg=\"file a +p\" rcu-nocbs=3 -- nohz=off";
        let parameters = Parameters::parse(line);
        assert_eq!(parameters.value("isolcpus"), Some("managed_irq,3"));
        assert_eq!(parameters.value("dyndbg"), Some("file a +p"));
        assert_eq!(parameters.value("rcu_nocbs"), Some("3"));
        assert!(parameters.has("quiet") && !parameters.has("nohz") && !parameters.has(""));
    }

    #[test]
    fn detects_preempt_rt_by_file_or_version() {
        let rt = |tree: Tree| Kernel::read(&tree).preempt_rt;
        assert_eq!(rt(Tree::parse("").with("/sys/kernel/realtime", "1")), Some(true));
        assert_eq!(rt(Tree::parse("").with("/proc/version", "Linux 6.12 #1 SMP PREEMPT_RT")), Some(true));
        assert_eq!(
            rt(Tree::parse("").with("/proc/version", "Linux 6.12 #1 SMP PREEMPT_DYNAMIC")),
            Some(false)
        );
        assert_eq!(rt(Tree::parse("")), None);
    }

    #[test]
    fn reads_kernel_options_if_available() {
        let tree = Tree::parse("").with("/proc/sys/kernel/osrelease", "6.1.0-18-amd64");
        assert_eq!(Kernel::read(&tree).option("CONFIG_HZ"), None);
        let tree = tree.with("/boot/config-6.1.0-18-amd64", "CONFIG_HZ_250=y\nCONFIG_HZ=250\n");
        let kernel = Kernel::read(&tree);
        assert_eq!(
            (kernel.option("CONFIG_HZ"), kernel.option("CONFIG_NO_HZ_FULL")),
            (Some("250"), Some("n"))
        );
        assert_eq!(kernel.version(), Some((6, 1)));
    }

    #[test]
    fn unpacks_gzip_with_every_optional_part() {
        let packed = miniz_oxide::deflate::compress_to_vec(b"CONFIG_HZ=1000\n", 6);
        let mut file = vec![0x1f, 0x8b, 8, 4 | 8 | 2, 0, 0, 0, 0, 0, 3, 2, 0, 7, 7];
        file.extend_from_slice(b"name\0\x01\x02");
        file.extend_from_slice(&packed);
        assert_eq!(gunzip(&file).as_deref(), Some("CONFIG_HZ=1000\n"));
        for length in 0..file.len() - packed.len() {
            assert_eq!(gunzip(&file[..length]), None);
        }
    }
}
