//! The CPUs: their number, shared resources, frequencies and idle states.

use crate::cpus::Cpus;
use crate::tree::Tree;

/// The CPUs of a machine.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    /// The online CPUs.
    pub online: Cpus,
    /// The offline CPUs.
    pub offline: Cpus,
    /// The CPUs isolated by a boot parameter.
    pub isolated: Cpus,
    /// The tickless CPUs (`nohz_full`).
    pub tickless: Cpus,
    /// The online CPUs, in order.
    pub cpus: Vec<Cpu>,
}

/// One CPU.
#[derive(Debug, Clone, Default)]
pub struct Cpu {
    /// The kernel's CPU number.
    pub number: usize,
    /// The vendor's name, or the design number.
    pub model: Option<String>,
    /// Family, model and stepping of an x86 CPU, such as `25-1-1`: hypervisors give different CPUs
    /// the same name.
    pub family: Option<String>,
    /// The current frequency in MHz; on a virtual machine usually the rate of its time-stamp
    /// counter.
    pub mhz: Option<f64>,
    /// The hardware threads of the same core, including this one.
    pub siblings: Cpus,
    /// The socket.
    pub package: Option<u32>,
    /// The NUMA node.
    pub node: Option<u32>,
    /// Its data caches, the smallest first.
    pub caches: Vec<Cache>,
    /// The frequency governor.
    pub governor: Option<String>,
    /// Its idle states, shallowest first.
    pub idle_states: Vec<IdleState>,
}

/// A cache of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: u32,
    /// The size in bytes.
    pub size: u64,
    /// The CPUs that share it.
    pub shared: Cpus,
}

/// An idle state of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleState {
    /// Its number in `cpuidle`.
    pub number: u32,
    /// The driver's name of it.
    pub name: String,
    /// The exit latency stated by the driver, in µs.
    pub exit_us: u64,
    /// `true` if it is disabled.
    pub is_disabled: bool,
}

impl Topology {
    /// Reads the CPUs.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let description = Description::read(tree);
        let list = |name: &str| {
            let text = tree.text(&format!("/sys/devices/system/cpu/{name}"));
            text.map(|text| Cpus::of_list(&text)).unwrap_or_default()
        };
        let online = list("online");
        Self {
            offline: list("offline"),
            isolated: list("isolated"),
            tickless: list("nohz_full"),
            cpus: online.iter().map(|number| Cpu::read(tree, &description, number)).collect(),
            online,
        }
    }

    /// Returns the CPU with this number, if it is online.
    #[must_use]
    pub fn cpu(&self, number: usize) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.number == number)
    }

    /// Returns `true` if two CPUs are on the same NUMA node, as far as known.
    #[must_use]
    pub fn is_near(&self, one: usize, other: usize) -> bool {
        let node = |number| self.cpu(number).and_then(|cpu| cpu.node);
        node(one) == node(other)
    }
}

impl Cpu {
    fn read(tree: &Tree, description: &Description, number: usize) -> Self {
        let directory = format!("/sys/devices/system/cpu/cpu{number}");
        let siblings = tree.text(&format!("{directory}/topology/thread_siblings_list"));
        let node = tree.list(&directory).iter().find_map(|name| name.strip_prefix("node")?.parse().ok());
        let idle = tree.list(&format!("{directory}/cpuidle"));
        let states = idle.iter().filter_map(|name| name.strip_prefix("state")?.parse().ok());
        let mut idle_states: Vec<IdleState> =
            states.filter_map(|state| IdleState::read(tree, &directory, state)).collect();
        idle_states.sort_by_key(|state| state.number);
        let cpuinfo = |key: &str| description.of(number, key).map(str::to_owned);
        let family = ["cpu family", "model", "stepping"].map(cpuinfo).into_iter().collect::<Option<Vec<_>>>();
        // The kernel scales it, or has only measured it.
        let khz: Option<f64> = tree.number(&format!("{directory}/cpufreq/scaling_cur_freq"));
        let mhz = khz.map(|khz| khz / 1e3).or_else(|| cpuinfo("cpu MHz")?.parse().ok());
        Self {
            number,
            model: cpuinfo("model name").or_else(|| cpuinfo("Model")).or_else(|| cpuinfo("CPU part")),
            family: family.map(|numbers| numbers.join("-")),
            mhz: mhz.filter(|&mhz| mhz > 0.0),
            siblings: siblings.map_or_else(|| Cpus::from([number]), |list| Cpus::of_list(&list)),
            package: tree.number(&format!("{directory}/topology/physical_package_id")),
            node: node.or_else(|| node_of(tree, number)),
            caches: caches(tree, &directory),
            governor: tree.text(&format!("{directory}/cpufreq/scaling_governor")),
            idle_states,
        }
    }
}

/// Returns the node, according to the node directories.
fn node_of(tree: &Tree, cpu: usize) -> Option<u32> {
    let nodes = tree.list("/sys/devices/system/node");
    nodes.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).find(|node: &u32| {
        let cpus = tree.text(&format!("/sys/devices/system/node/node{node}/cpulist"));
        cpus.is_some_and(|list| Cpus::of_list(&list).has(cpu))
    })
}

fn caches(tree: &Tree, directory: &str) -> Vec<Cache> {
    let indices = tree.list(&format!("{directory}/cache"));
    let caches = indices.iter().filter(|name| name.starts_with("index")).filter_map(|index| {
        let read = |name: &str| tree.text(&format!("{directory}/cache/{index}/{name}"));
        if read("type")? == "Instruction" {
            return None;
        }
        let size = read("size")?;
        let (digits, unit) = size.split_at(size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len()));
        let factor = match unit {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return None,
        };
        Some(Cache {
            level: read("level")?.parse().ok()?,
            size: digits.parse::<u64>().ok()?.checked_mul(factor)?,
            shared: Cpus::of_list(&read("shared_cpu_list").unwrap_or_default()),
        })
    });
    let mut caches: Vec<Cache> = caches.collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

impl IdleState {
    fn read(tree: &Tree, directory: &str, number: u32) -> Option<Self> {
        let read = |name: &str| tree.text(&format!("{directory}/cpuidle/state{number}/{name}"));
        Some(Self {
            number,
            name: read("name")?,
            exit_us: read("latency")?.parse().ok()?,
            is_disabled: read("disable")? != "0",
        })
    }
}

/// The kernel's description of each CPU (`/proc/cpuinfo`) in paragraphs: one for each CPU, and
/// on some architectures one for all.
struct Description(Vec<Vec<(String, String)>>);

impl Description {
    /// Not recorded: it is long, and the findings do not depend on it.
    fn read(tree: &Tree) -> Self {
        Self::parse(&tree.glance("/proc/cpuinfo").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let lines = |paragraph: &str| {
            let lines = paragraph.lines().filter_map(|line| line.split_once(':'));
            lines.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
        };
        Self(text.split("\n\n").map(lines).collect())
    }

    /// Returns the value of `key` for this CPU, or for all of them.
    fn of(&self, cpu: usize, key: &str) -> Option<&str> {
        let find = |lines: &'_ [(String, String)], key: &str| lines.iter().position(|(name, _)| name == key);
        let is_of = |lines: &[(String, String)]| match find(lines, "processor") {
            Some(at) => lines[at].1.parse() == Ok(cpu),
            None => true,
        };
        let matching = self.0.iter().filter(|lines| is_of(lines));
        let mut values = matching.filter_map(|lines| Some(lines[find(lines, key)?].1.as_str()));
        values.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_shared_caches_and_idle_states() {
        let tree = Tree::parse(
            "==> /sys/devices/system/cpu/online <==\n0-1\n\n==> /sys/devices/system/cpu/nohz_full <==\n(null)\n
==> /sys/devices/system/cpu/cpu1/topology/thread_siblings_list <==\n0-1
==> /sys/devices/system/cpu/cpu1/cpuidle/state1/name <==\nC6
==> /sys/devices/system/cpu/cpu1/cpuidle/state1/latency <==\n133
==> /sys/devices/system/cpu/cpu1/cpuidle/state1/disable <==\n0
==> /sys/devices/system/cpu/cpu1/cpuidle/state2/name <==\nbroken
==> /sys/devices/system/cpu/cpu1/cache/index0/type <==\nData
==> /sys/devices/system/cpu/cpu1/cache/index0/level <==\n1
==> /sys/devices/system/cpu/cpu1/cache/index0/size <==\n32K
==> /sys/devices/system/node/node3/cpulist <==\n1-4
",
        );
        let topology = Topology::read(&tree);
        assert!(topology.tickless.is_empty());
        let cpu = topology.cpu(1).unwrap();
        assert_eq!((cpu.siblings.to_string(), cpu.node), ("0-1".into(), Some(3)));
        let c6 = IdleState { number: 1, name: "C6".into(), exit_us: 133, is_disabled: false };
        assert_eq!(cpu.idle_states, [c6]);
        assert_eq!(cpu.caches, [Cache { level: 1, size: 32 << 10, shared: Cpus::default() }]);
        assert_eq!(topology.cpu(0).unwrap().siblings, Cpus::from([0]));
        assert!(!topology.is_near(0, 1));
    }

    #[test]
    fn names_cpus_and_their_frequencies() {
        let info = "processor : 0\ncpu family : 25\nmodel : 1\nmodel name : AMD EPYC\nstepping : 2\ncpu MHz : 2450.5\n\n\
                    processor : 1\nmodel name : other\ncpu MHz : 0.000\n";
        let tree = Tree::parse("").with("/sys/devices/system/cpu/online", "0-1").with("/proc/cpuinfo", info);
        let [first, second] = &Topology::read(&tree).cpus[..] else { panic!("two CPUs") };
        assert_eq!((first.model.as_deref(), first.family.as_deref()), (Some("AMD EPYC"), Some("25-1-2")));
        assert_eq!((first.mhz, second.family.as_deref(), second.mhz), (Some(2450.5), None, None));
        let scaled = tree.with("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1800000");
        assert_eq!(Topology::read(&scaled).cpus[0].mhz, Some(1800.0));
    }

    #[test]
    fn finds_settings_of_one_cpu_or_all() {
        let arm =
            "processor\t: 0\nCPU part\t: 0xd08\n\nprocessor\t: 1\nCPU part\t: 0xd03\n\nHardware\t: BCM2835\n";
        let arm = Description::parse(arm);
        assert_eq!(arm.of(1, "CPU part"), Some("0xd03"));
        assert_eq!((arm.of(0, "Hardware"), arm.of(2, "CPU part")), (Some("BCM2835"), None));
        assert_eq!(Description::parse("").of(0, "processor"), None);
    }
}
