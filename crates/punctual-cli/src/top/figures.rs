//! Displayed figures of a task: rates, and figures since the start or the last reset.

use std::cmp::Reverse;

use punctual_core::metrics::{Figure, Term, bucket_end, quantile};

use super::args::Order;
use super::memory::{About, Figures, Quantity, Snapshot};

/// A quantity, in ns. Quantiles are within 1 %.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stat {
    pub(crate) last: u64,
    pub(crate) max: u64,
    pub(crate) p50: u64,
    pub(crate) p999: u64,
    pub(crate) mean: f64,
    /// The upper end of each non-empty bucket, and its count.
    pub(crate) buckets: Vec<(u64, u64)>,
}

impl Stat {
    /// Returns the difference since `before`.
    fn new(now: &Quantity, before: Option<&Quantity>) -> Self {
        let earlier = |bucket: usize| before.map_or(0, |before| before.counts[bucket]);
        let counts = now.counts.iter().enumerate();
        let counts = counts.map(|(bucket, &count)| (bucket, count.saturating_sub(earlier(bucket))));
        let buckets: Vec<(u64, u64)> = counts
            .filter(|&(_, count)| count > 0)
            .map(|(bucket, count)| (bucket_end(bucket).min(now.max), count.into()))
            .collect();
        // Exact, if the overall maximum occurred after it; otherwise the end of its bucket.
        let max = match before {
            Some(before) if before.max >= now.max => buckets.last().map_or(0, |&(end, _)| end),
            _ => now.max,
        };
        let count: u64 = buckets.iter().map(|&(_, count)| count).sum();
        let sum = now.sum.saturating_sub(before.map_or(0, |before| before.sum));
        let mean = if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        let [p50, p999] = [0.5, 0.999].map(|part| quantile(buckets.iter().copied(), part));
        Self { last: now.last, max, p50, p999, mean, buckets }
    }
}

/// Displayed figures of a task.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) partition: String,
    pub(crate) level: u64,
    pub(crate) period: Option<u64>,
    pub(crate) deadline: Option<u64>,
    /// True if its jobs are measured; otherwise only figures not derived from jobs are known.
    pub(crate) measured: bool,
    /// Jobs per second; `None` at the first update.
    pub(crate) rate: Option<f64>,
    /// In the order of [`Figure::ALL`]. A maximum is that since the start of the app, or 0 if its
    /// count is 0 since the reset.
    pub(crate) numbers: [u64; Figure::ALL.len()],
    /// In the order of [`Term::ALL`].
    pub(crate) terms: [Stat; Term::ALL.len()],
}

impl Row {
    pub(crate) fn number(&self, figure: Figure) -> u64 {
        self.numbers[figure as usize]
    }

    pub(crate) fn term(&self, term: Term) -> &Stat {
        &self.terms[term as usize]
    }

    /// Returns whether times are known: without a job there are none.
    pub(crate) fn has_times(&self) -> bool {
        self.measured && self.number(Figure::Jobs) > 0
    }
}

/// References for comparison.
#[derive(Debug, Default)]
pub(crate) struct Since {
    /// The previous update, for rates.
    previous: Option<Snapshot>,
    /// The update from which on figures count, if not from the start.
    reset: Option<Snapshot>,
}

impl Since {
    /// Counts from `snapshot` on.
    pub(crate) fn reset(&mut self, snapshot: &Snapshot) {
        self.reset = Some(snapshot.clone());
    }

    /// Returns whether figures count from a reset.
    pub(crate) fn is_reset(&self) -> bool {
        self.reset.is_some()
    }

    /// Records that `snapshot` has been shown.
    pub(crate) fn next(&mut self, snapshot: Snapshot) {
        self.previous = Some(snapshot);
    }
}

/// Returns the figures of every task, in the order of the memory.
pub(crate) fn rows(about: &About, snapshot: &Snapshot, since: &Since) -> Vec<Row> {
    let seconds =
        since.previous.as_ref().map(|previous| snapshot.at.duration_since(previous.at).as_secs_f64());
    let of = |snapshot: &'_ Option<Snapshot>, index: usize| {
        snapshot.as_ref().and_then(|snapshot| snapshot.tasks.get(index)).cloned()
    };
    let tasks = about.tasks.iter().zip(&snapshot.tasks).enumerate();
    let row = |(index, (task, now)): (usize, (&super::memory::Task, &Figures))| {
        let before = of(&since.reset, index);
        let before = before.as_ref();
        let rate = of(&since.previous, index).zip(seconds.filter(|seconds| *seconds > 0.0));
        let rate = rate.map(|(then, seconds)| {
            now.number(Figure::Jobs).saturating_sub(then.number(Figure::Jobs)) as f64 / seconds
        });
        let since_reset =
            |figure| now.number(figure).saturating_sub(before.map_or(0, |before| before.number(figure)));
        let number = |figure: Figure| match figure.row().maximum_of {
            None => since_reset(figure),
            Some(count) if since_reset(count) > 0 => now.number(figure),
            Some(_) => 0,
        };
        Row {
            name: task.name.clone(),
            partition: task.partition.clone(),
            level: task.level,
            period: task.period,
            deadline: task.deadline,
            measured: task.is_measured(),
            rate,
            numbers: Figure::ALL.map(number),
            terms: Term::ALL.map(|term| Stat::new(now.term(term), before.map(|before| before.term(term)))),
        }
    };
    tasks.map(row).collect()
}

/// Returns the rows whose names contain `filter`, in this order; equal ones by level and name.
pub(crate) fn arranged(mut rows: Vec<Row>, order: Order, filter: &str) -> Vec<Row> {
    rows.retain(|row| row.name.contains(filter));
    rows.sort_by(|a, b| (Reverse(a.level), &a.name).cmp(&(Reverse(b.level), &b.name)));
    match order {
        Order::Level => {}
        Order::Task => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        Order::Rate => rows.sort_by(|a, b| b.rate.unwrap_or(0.0).total_cmp(&a.rate.unwrap_or(0.0))),
        Order::Jitter => rows.sort_by_key(|row| Reverse(row.term(Term::Jitter).max)),
        Order::Response => rows.sort_by_key(|row| Reverse(row.term(Term::Response).max)),
        Order::Execution => rows.sort_by_key(|row| Reverse(row.term(Term::Execution).max)),
        Order::Misses => rows.sort_by_key(|row| {
            Reverse(row.number(Figure::Misses).saturating_add(row.number(Figure::Overruns)))
        }),
    }
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::{Duration, Instant};

    use punctual_core::metrics::{BUCKETS, bucket_of};

    use super::*;
    use crate::top::memory::{Partition, Task, Traffic};

    fn quantity(values: &[u64]) -> Quantity {
        let mut counts = vec![0; BUCKETS];
        values.iter().for_each(|&value| counts[bucket_of(value)] += 1);
        Quantity {
            last: values.last().copied().unwrap_or(0),
            max: values.iter().copied().max().unwrap_or(0),
            sum: values.iter().sum(),
            counts,
        }
    }

    pub(crate) fn about(names: &[&str]) -> About {
        let level = |index: usize| index as u64 + 1;
        let task = |(index, name): (usize, &&str)| {
            let task = serde_json::json!({
                "name": name, "partition": "main", "level": level(index), "period": 1_000_000, "measured": 1
            });
            serde_json::from_value::<Task>(task).unwrap()
        };
        About {
            app: "app".into(),
            program: Some("program".into()),
            punctual: "0.1.0".into(),
            partitions: vec![Partition { name: "main".into(), cpu: Some(1) }],
            tasks: names.iter().enumerate().map(task).collect(),
            kernel: "Linux".into(),
            memory: "not locked".into(),
            threads: Vec::new(),
            missing: vec!["thread level 1: no SCHED_FIFO".into()],
            notes: Vec::new(),
        }
    }

    /// Returns figures of tasks whose jobs had these response times.
    pub(crate) fn snapshot(at: Instant, responses: &[&[u64]]) -> Snapshot {
        let figures = |responses: &&[u64]| Figures {
            numbers: Figure::ALL
                .map(|figure| if figure == Figure::Jobs { responses.len() as u64 } else { 0 }),
            terms: Term::ALL.map(|term| quantity(if term == Term::Jitter { &[] } else { responses })),
        };
        let tasks = responses.iter().map(figures).collect();
        let traffic = vec![Traffic { name: "/a".into(), carried: 7, lost: 0, refused: 2 }];
        Snapshot {
            at,
            started: 1,
            updated: 1,
            age: 0,
            stopping: false,
            dropped: 0,
            helper_starts: 3,
            helper_ends: 2,
            tasks,
            traffic,
        }
    }

    #[test]
    fn rate_is_between_two_observations() {
        let (about, start) = (about(&["a"]), Instant::now());
        let mut since = Since::default();
        let first = snapshot(start, &[&[10; 5]]);
        assert_eq!(rows(&about, &first, &since)[0].rate, None);
        since.next(first);
        let second = snapshot(start + Duration::from_millis(500), &[&[10; 25]]);
        assert_eq!(rows(&about, &second, &since)[0].rate, Some(40.0));
        // A decreasing count comes from damaged memory.
        since.next(second);
        assert_eq!(
            rows(&about, &snapshot(start + Duration::from_secs(1), &[&[]]), &since)[0].rate,
            Some(0.0)
        );
    }

    #[test]
    fn reset_discards_earlier_figures() {
        let (about, start) = (about(&["a"]), Instant::now());
        let mut since = Since::default();
        let before = snapshot(start, &[&[100, 90_000]]);
        assert_eq!(rows(&about, &before, &since)[0].term(Term::Response).max, 90_000);
        since.reset(&before);
        let row = &rows(&about, &before, &since)[0];
        assert_eq!(
            (row.number(Figure::Jobs), row.term(Term::Response)),
            (0, &Stat { last: 90_000, ..Stat::default() })
        );

        let after = &rows(&about, &snapshot(start, &[&[100, 90_000, 200, 3_000]]), &since)[0];
        let response = after.term(Term::Response);
        assert_eq!((after.number(Figure::Jobs), response.p50), (2, 200));
        // From the histogram, within 1 %.
        assert!((3_000..3_030).contains(&response.max), "{}", response.max);
        let worse = &rows(&about, &snapshot(start, &[&[100, 90_000, 95_001]]), &since)[0];
        assert_eq!(worse.term(Term::Response).max, 95_001, "the largest of all is known exactly");
    }

    #[test]
    fn quantiles_are_bucket_ends_up_to_maximum() {
        let values: Vec<u64> = (1..=10_000).collect();
        let stat = Stat::new(&quantity(&values), None);
        assert!(stat.p50.abs_diff(5_000) <= 50 && stat.p999.abs_diff(9_990) <= 100, "{stat:?}");
        assert!(stat.p999 <= stat.max && stat.max == 10_000);
        assert_eq!(stat.mean, 5_000.5);
    }

    #[test]
    fn rows_are_sorted_and_filtered() {
        let about = about(&["low", "mid", "high"]);
        let snapshot = snapshot(Instant::now(), &[&[300], &[100], &[200]]);
        let names = |order, filter: &str| -> Vec<String> {
            let rows = arranged(rows(&about, &snapshot, &Since::default()), order, filter);
            rows.into_iter().map(|row| row.name).collect()
        };
        assert_eq!(names(Order::Level, ""), ["high", "mid", "low"]);
        assert_eq!(names(Order::Task, ""), ["high", "low", "mid"]);
        assert_eq!(names(Order::Response, ""), ["low", "high", "mid"]);
        assert_eq!(names(Order::Level, "i"), ["high", "mid"]);
    }
}
