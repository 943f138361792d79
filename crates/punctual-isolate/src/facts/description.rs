//! The kernel's description of each CPU (`/proc/cpuinfo`).

use crate::tree::Tree;

/// The paragraphs of the description: one for each CPU, and on some architectures one for all.
pub(super) struct Description(Vec<Vec<(String, String)>>);

impl Description {
    /// Not recorded: it is long, and the findings do not depend on it.
    pub(super) fn read(tree: &Tree) -> Self {
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
    pub(super) fn of(&self, cpu: usize, key: &str) -> Option<&str> {
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
    fn finds_settings_of_one_cpu_or_all() {
        let arm =
            "processor\t: 0\nCPU part\t: 0xd08\n\nprocessor\t: 1\nCPU part\t: 0xd03\n\nHardware\t: BCM2835\n";
        let arm = Description::parse(arm);
        assert_eq!(arm.of(1, "CPU part"), Some("0xd03"));
        assert_eq!((arm.of(0, "Hardware"), arm.of(2, "CPU part")), (Some("BCM2835"), None));
        assert_eq!(Description::parse("").of(0, "processor"), None);
    }
}
