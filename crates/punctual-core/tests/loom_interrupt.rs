//! A timer's handler that looks what is next, beside another CPU that arms a timer: either the handler sees the timer, or
//! whoever arms it sees that the handler's CPU would be too late.
#![cfg(loom)]

mod loom_support;

use loom_support::{ModelPort, check, level, partition, slots, start, worker};
use punctual_core::{Instant, Slots};

type Timers = Slots<(), 1, 1>;

fn at(time: u64) -> Instant {
    Instant::from_ticks(time)
}

/// A handler looks at time 0 at two levels, of which the one is due at 9. Meanwhile a timer of the other is armed for 5, or
/// moved there from `first`.
fn told_of(first: Option<u64>) {
    check(3, move |arena| {
        let thread = worker(arena, 0, 1, true);
        let workers = [1, 2].map(|base| worker(arena, base, base.into(), true));
        let [low, high] =
            [1, 2].map(|number| level(arena, number, workers[number as usize - 1], 1, |_, _| {}));
        let p = partition(arena, ModelPort::new(2, false), &[low, high], &[thread, workers[0], workers[1]]);
        let (earlier, other): (&Timers, &Timers) = (slots(arena, low), slots(arena, high));
        other.arm((), at(9)).unwrap();
        let armed = first.map(|first| earlier.arm((), at(first)).unwrap());
        let next = arena.put(std::sync::OnceLock::new());
        let handler = start(1, move || next.set(p.tick(thread, at(0))).unwrap());
        match armed {
            Some(armed) => assert!(earlier.reschedule(armed, at(5)), "it is not due"),
            None => drop(earlier.arm((), at(5)).unwrap()),
        }
        p.armed(low, at(5));
        handler.join().unwrap();
        let next = next.get().copied().flatten().expect("timers are armed");
        assert!(
            next <= at(5) || p.port().was_woken(workers[0]),
            "the timer of {next} is set, and nobody is told of 5"
        );
    });
}

#[test]
fn a_handler_learns_of_a_first_timer() {
    told_of(None);
}

#[test]
fn a_handler_learns_of_an_earlier_timer() {
    told_of(Some(20));
}

/// A handler takes what is due at a level to run it. Meanwhile another CPU arms a timer of that level.
#[test]
fn a_handler_learns_of_a_timer_beside_the_one_that_it_runs() {
    check(3, |arena| {
        let thread = worker(arena, 0, 1, true);
        let own = worker(arena, 1, 1, true);
        let level = level(arena, 1, own, 2, |_, _| {});
        let p = partition(arena, ModelPort::new(2, false), &[level], &[thread, own]);
        let timers: &Slots<(), 2, 1> = slots(arena, level);
        timers.arm((), at(3)).unwrap();
        let next = arena.put(std::sync::OnceLock::new());
        let handler = start(1, move || next.set(p.tick(thread, at(3))).unwrap());
        timers.arm((), at(5)).unwrap();
        p.armed(level, at(5));
        handler.join().unwrap();
        let next = next.get().copied().flatten();
        assert!(
            next.is_some_and(|next| next <= at(5)) || p.port().was_woken(own),
            "the timer of {next:?} is set, and nobody is told of 5"
        );
    });
}
