//! A known amount of work: edges of an image, and calculation.

use std::hint::black_box;

use super::cases::Kind;
use super::edges::{Image, canny};
use crate::clock::{self, Clock};
use crate::rt;

/// Work of both kinds, and the duration of a unit.
#[derive(Debug)]
pub(super) struct Work {
    image: Image<u8>,
    image_ns: f64,
    block_ns: f64,
}

impl Work {
    /// Measures the duration of a unit on this CPU.
    pub(super) fn measured(cpu: usize, clock: &Clock) -> Self {
        let image = picture();
        let (image_ns, block_ns) = rt::on_thread(cpu, rt::PRIORITY, |_| {
            let time = |work: &dyn Fn()| {
                // The best of several, so that a disturbance does not reduce the work.
                let times = (0..3).map(|_| {
                    let from = clock::now();
                    work();
                    clock.ns(clock::now() - from).max(1.0)
                });
                times.fold(f64::INFINITY, f64::min)
            };
            (time(&|| edges(&image)), time(&|| calculate(0)))
        });
        Self { image, image_ns, block_ns }
    }

    /// Works for about `ns` of CPU time, in whole units.
    pub(super) fn do_it(&self, kind: Kind, ns: f64) {
        let pieces = |one_ns: f64| (ns / one_ns).ceil().clamp(1.0, 1e6) as u32;
        match kind {
            Kind::Canny => (0..pieces(self.image_ns)).for_each(|_| edges(&self.image)),
            Kind::Busy => (0..pieces(self.block_ns)).for_each(calculate),
        }
    }
}

/// Returns shapes on a gradient with noise, always the same.
fn picture() -> Image<u8> {
    let mut noise = 0x2545_f491_u32;
    Image::from_fn(320, 240, |x, y| {
        // An xorshift generator.
        noise ^= noise << 13;
        noise ^= noise >> 17;
        noise ^= noise << 5;
        let (dx, dy) = (x as f64 - 110.0, y as f64 - 120.0);
        let inside_circle = dx * dx + dy * dy < 70.0 * 70.0;
        let inside_bar = (200..280).contains(&x) && (40..200).contains(&y);
        let base = x as u32 / 8 + if inside_circle { 120 } else { 0 } + if inside_bar { 90 } else { 0 };
        (base + noise % 12).min(255) as u8
    })
}

fn edges(image: &Image<u8>) {
    black_box(canny(black_box(image), 40.0, 120.0));
}

/// Several thousand steps of a calculation that cannot be shortened.
fn calculate(seed: u32) {
    let mut value = f64::from(seed) + 1.5;
    for step in 0..20_000_u32 {
        value = black_box((value * 1.000_01 + f64::from(step)).sqrt() + 1.0);
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_edges_of_shapes() {
        let edges = canny(&picture(), 40.0, 120.0);
        let near = |x: isize, y: isize| (x - 3..=x + 3).any(|x| edges.at(x, y));
        for x in [40, 180, 200, 280] {
            assert!(near(x, 120), "no edge at {x}");
        }
        assert!(!near(110, 120) && !near(240, 120), "an edge within a shape");
        assert!((0..320).all(|x| !edges.at(x, 5)), "an edge above all shapes");
    }
}
