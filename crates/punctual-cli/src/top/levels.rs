//! CPU utilization of each level, by update.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use punctual_core::metrics::Term;
use punctual_report::format::NONE;

use super::canvas::{Area, Canvas, Style};
use super::memory::{About, Snapshot};

/// Number of stored updates, as many as the widest terminal shows.
const HISTORY: usize = 512;

/// A level of a partition; the highest level comes first.
type Key = (usize, std::cmp::Reverse<u64>);

/// CPU time of each level.
#[derive(Debug, Default)]
pub(super) struct Levels {
    /// Their process.
    process: Option<u32>,
    /// The last update, and the CPU time of each level by then.
    last: Option<(Instant, BTreeMap<Key, u64>)>,
    /// The name of each level, and its utilization between two updates in thousandths, newest last.
    levels: BTreeMap<Key, (String, VecDeque<u64>)>,
}

impl Levels {
    /// Adds the utilization between this update and the previous one.
    pub(super) fn add(&mut self, process: u32, about: &About, snapshot: &Snapshot) {
        if self.process != Some(process) {
            *self = Self { process: Some(process), ..Self::default() };
        }
        let several = about.partitions.len() > 1;
        let mut now: BTreeMap<Key, u64> = BTreeMap::new();
        for (task, figures) in about.tasks.iter().zip(&snapshot.tasks) {
            if !task.is_measured() {
                continue;
            }
            let partition = about.partitions.iter().position(|partition| partition.name == task.partition);
            let key = (partition.unwrap_or(usize::MAX), std::cmp::Reverse(task.level));
            let sum = now.entry(key).or_default();
            // C excludes preempting jobs, so no time counts for two levels.
            *sum = sum.saturating_add(figures.term(Term::Execution).sum);
            self.levels.entry(key).or_insert_with(|| {
                let name = format!("level {}", task.level);
                (if several { format!("{} {name}", task.partition) } else { name }, VecDeque::new())
            });
        }
        if let Some((at, before)) = &self.last {
            let passed = snapshot.at.duration_since(*at).as_nanos().max(1);
            for (key, (_, parts)) in &mut self.levels {
                let had = |of: &BTreeMap<Key, u64>| of.get(key).copied().unwrap_or(0);
                let part = u128::from(had(&now).saturating_sub(had(before))) * 1_000 / passed;
                parts.push_back(part.min(1_000) as u64);
                if parts.len() > HISTORY {
                    parts.pop_front();
                }
            }
        }
        self.last = Some((snapshot.at, now));
    }

    /// Returns the levels of all partitions, the highest of the first partition first: name, and
    /// utilization in thousandths, newest last.
    fn each(&self) -> impl Iterator<Item = (&str, &VecDeque<u64>)> {
        self.levels.values().map(|(name, parts)| (name.as_str(), parts))
    }
}

/// Width of the newest value.
const PART_WIDTH: usize = 9;

/// Draws one or more lines for each level, the newest update at the right. Bars have a common
/// scale, so that levels can be compared; levels without room for a line are not shown.
pub(super) fn draw(levels: &Levels, canvas: &mut Canvas, area: Area) {
    let most = levels.each().flat_map(|(_, parts)| parts.iter().copied()).max().unwrap_or(0).max(1);
    let title =
        format!(" CPU use of each level, update by update; the highest bar: {:.1} % ", most as f64 / 10.0);
    let mut rest = canvas.titled(area, &title);
    let count = levels.levels.len();
    if count == 0 {
        return canvas.text(rest, "no task is measured", Style::PLAIN);
    }
    let height = (rest.height / count).max(1);
    let name_width = levels.each().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, parts) in levels.each().take(rest.height / height) {
        let mut bars = rest.split_top(height);
        canvas.text(bars.split_left(name_width), name, Style::PLAIN);
        let now =
            parts.back().map_or_else(|| NONE.to_owned(), |part| format!("{:.1} %", *part as f64 / 10.0));
        canvas.text_right(bars.split_left(1 + PART_WIDTH), &now, Style::PLAIN);
        bars.split_left(1);
        // The newest at the right.
        bars.split_left(bars.width.saturating_sub(parts.len()));
        canvas.bars(bars, parts.iter().skip(parts.len() - bars.width).copied(), most);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::top::figures::tests::{about, snapshot};

    #[test]
    fn shows_use_of_each_level_since_last_sample() {
        let (mut levels, start) = (Levels::default(), Instant::now());
        let about = about(&["log", "control"]);
        let parts = |levels: &Levels| -> Vec<(String, Vec<u64>)> {
            levels.each().map(|(name, parts)| (name.to_owned(), parts.iter().copied().collect())).collect()
        };
        let expected = |high: &[u64], low: &[u64]| {
            vec![("level 2".to_owned(), high.to_vec()), ("level 1".to_owned(), low.to_vec())]
        };
        levels.add(411, &about, &snapshot(start, &[&[100_000_000], &[]]));
        assert_eq!(parts(&levels), expected(&[], &[]), "since when is not known");
        let later = start + Duration::from_secs(1);
        levels.add(411, &about, &snapshot(later, &[&[100_000_000, 250_000_000], &[5_000_000]]));
        // A job of two seconds ends within one: it counts as the whole CPU, and not more.
        levels.add(411, &about, &snapshot(later + Duration::from_secs(1), &[&[u64::MAX], &[5_000_000]]));
        assert_eq!(parts(&levels), expected(&[5, 0], &[250, 1_000]));
        levels.add(412, &about, &snapshot(later, &[&[], &[]]));
        assert!(levels.each().all(|(_, parts)| parts.is_empty()), "it is another app");
    }
}
