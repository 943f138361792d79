//! Compares inferred models of releases with those of LiME's package `rt-model-inference` 1.0.1.
//!
//! `inference.py` writes its results into `inference.json`. Distances must be equal. Both sides
//! choose periodic models by heuristics: those of this crate may be worse at most by the factor
//! within which a rounder period is preferred.

use punctual_analysis::infer::Window;
use punctual_analysis::infer::curves::{Curves, Span};
use punctual_analysis::infer::periodic::{Grid, Periodic};
use serde::Deserialize;

#[derive(Deserialize)]
struct Sequence {
    windows: Vec<Window>,
    separation: u64,
    /// Period, offset and jitter.
    periodic: (u64, i64, u64),
    certain: (u64, i64, u64),
    possible: (u64, i64, u64),
    least: Vec<u64>,
    least_of_windows: Vec<u64>,
    least_most_of_windows: Vec<u64>,
    largest: Vec<u64>,
}

impl Sequence {
    fn all() -> Vec<Self> {
        let all: Vec<Self> = serde_json::from_str(include_str!("inference.json")).unwrap();
        assert_eq!(all.len(), 60);
        all
    }

    fn instants(&self) -> impl Iterator<Item = Window> {
        self.windows.iter().map(|&(first, _)| (first, first))
    }
}

fn spans(releases: impl IntoIterator<Item = Window>, of: impl Fn(&Span) -> u64) -> Vec<u64> {
    let mut curves = Curves::new(8);
    releases.into_iter().for_each(|release| curves.push(release));
    curves.spans().iter().map(of).collect()
}

fn grid(releases: impl IntoIterator<Item = Window>) -> Grid {
    let mut grid = Grid::default();
    releases.into_iter().for_each(|release| grid.push(release));
    grid
}

#[test]
fn distances_equal_oracle() {
    for (number, it) in Sequence::all().iter().enumerate() {
        let windows = || it.windows.iter().copied();
        assert_eq!(spans(it.instants(), |span| span.least), it.least, "sequence {number}");
        assert_eq!(it.least[0], it.separation, "sequence {number}");
        assert_eq!(spans(it.instants(), |span| span.largest), it.largest, "sequence {number}");
        assert_eq!(spans(windows(), |span| span.least), it.least_of_windows, "sequence {number}");
        assert_eq!(spans(windows(), |span| span.least_most), it.least_most_of_windows, "sequence {number}");
    }
}

#[test]
fn periodic_models_are_as_tight_as_oracle() {
    let mut same = 0;
    for (number, it) in Sequence::all().iter().enumerate() {
        let (exact, windows) = (grid(it.instants()), grid(it.windows.iter().copied()));
        let models = [
            (exact.certain(), it.periodic),
            (windows.certain(), it.certain),
            (windows.possible(), it.possible),
        ];
        for (ours, theirs) in models {
            let Periodic { period, offset, jitter } = ours.unwrap();
            assert!(jitter * 4 <= theirs.2 * 5, "sequence {number}: jitter {jitter}, and {theirs:?}");
            if period == theirs.0 {
                assert_eq!((offset, jitter), (theirs.1, theirs.2), "sequence {number}");
                same += 1;
            }
        }
        // With their period, our model needs as much jitter as theirs.
        assert_eq!(exact.jitter_with(it.periodic.0), it.periodic.2, "sequence {number}");
        assert_eq!(windows.jitter_with(it.certain.0), it.certain.2, "sequence {number}");
    }
    assert!(same >= 90, "only {same} of 180 models have the same period");
}
