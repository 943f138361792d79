use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::Task;
use punctual_trace::jobs::Config;
use punctual_trace::stats::Watch;

use super::*;

const HIGH: Task = Task { id: 7, priority: 10 };
const LOW: Task = Task { id: 9, priority: 30 };
const IRQ: Task = Task { id: 24, priority: 5 };
const IDLE: Task = Task { id: 0, priority: 120 };

/// Thread 7 waits for a futex that 9 holds, which 24 displaces; interrupt 30 displaces 7.
pub(in super::super) fn inversion() -> Vec<Event> {
    let switch = |from: Task, reason, to| Kind::Switch { from, reason, to };
    let event = |time, by: Task, kind| Event { time, cpu: 0, by: by.id, kind };
    vec![
        event(10, LOW, Kind::SyscallExit { number: 1 }),
        event(100, LOW, Kind::Waking { task: HIGH, cpu: 0 }),
        event(110, LOW, switch(LOW, Runnable, HIGH)),
        event(150, HIGH, Kind::FutexEnter { word: 0x1000, operation: 128, value: 2 }),
        event(160, HIGH, switch(HIGH, Sleeping, LOW)),
        event(200, LOW, Kind::Waking { task: IRQ, cpu: 0 }),
        event(210, LOW, switch(LOW, Runnable, IRQ)),
        event(520, IRQ, switch(IRQ, Sleeping, LOW)),
        event(905, LOW, Kind::Waking { task: HIGH, cpu: 0 }),
        event(910, LOW, switch(LOW, Runnable, HIGH)),
        event(962, HIGH, Kind::FutexExit { result: 0 }),
        event(1_000, HIGH, Kind::IrqEntry { irq: 30 }),
        event(1_020, HIGH, Kind::IrqExit { irq: 30 }),
        event(1_134, HIGH, switch(HIGH, Sleeping, IDLE)),
    ]
}

pub(in super::super) fn worst(events: &[Event]) -> CapturedJob {
    let mut watch = Watch::new(Config { segments: true, ..Config::default() }, 1);
    events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    let task = watch.tasks().iter().find(|task| task.key().actor == Actor::Thread(7)).expect("it has a job");
    task.worst()[0].clone()
}

fn stretch(start: u64, end: u64, cpu: Option<u16>, cost: Option<Phase>) -> Stretch {
    Stretch { start, end, cpu, cost }
}

#[test]
fn shows_everyone_involved_with_their_cost() {
    let scene = scene(&worst(&inversion()), |_| true);
    let [low, irq_thread, irq] = scene.rows.as_slice() else { panic!("{scene:#?}") };
    assert_eq!(
        [low.actor, irq_thread.actor, irq.actor],
        [Actor::Thread(9), Actor::Thread(24), Actor::Irq(30)]
    );
    let (cpu, blocking) = (Some(0), Some(Phase::Blocking));
    let expected = [
        stretch(100, 110, cpu, Some(Phase::Jitter)),
        stretch(110, 160, None, None),
        stretch(160, 210, cpu, blocking),
        stretch(210, 520, None, None),
        stretch(520, 910, cpu, blocking),
        stretch(910, 1_134, None, None),
    ];
    assert_eq!(low.stretches, expected);
    assert_eq!(low.holds, [(150, 905, 0)]);
    assert_eq!(irq_thread.stretches, [stretch(200, 210, None, None), stretch(210, 520, cpu, blocking)]);
    assert_eq!(irq.stretches, [stretch(1_000, 1_020, cpu, Some(Phase::Interference))]);
    let wakes: Vec<_> = scene.wakes.iter().map(|wake| (wake.time, wake.row)).collect();
    assert_eq!(wakes, [(100, Some(0)), (905, Some(0))]);
    assert_eq!(scene.left_out, 0);
}

/// A job that starts in the middle of a wait was woken because it had the lock by then.
#[test]
fn draws_no_holder_of_lock_acquired_before_start() {
    let captured = worst(&inversion().split_off(2));
    assert_eq!(
        captured.job.blockings.iter().map(|wait| (wait.start, wait.end)).collect::<Vec<_>>(),
        [(910, 962)]
    );
    let scene = scene(&captured, |_| true);
    assert!(!scene.rows.is_empty() && scene.rows.iter().all(|row| row.holds.is_empty()), "{scene:#?}");
    assert_eq!(scene.wakes.iter().map(|wake| wake.time).collect::<Vec<_>>(), [905]);
}

/// A thread whose switches may be missing has no row, since its running times are unknown; its
/// wake-up of the job is known.
#[test]
fn omits_irrelevant_threads() {
    let scene = scene(&worst(&inversion()), |tid| tid != 9);
    assert_eq!(
        scene.rows.iter().map(|row| row.actor).collect::<Vec<_>>(),
        [Actor::Thread(24), Actor::Irq(30)]
    );
    assert_eq!(scene.wakes[0].row, None);
    assert_eq!(scene.wakes[0].actor, Actor::Thread(9));
}

#[test]
fn draws_nothing_before_first_kept_event() {
    let mut captured = worst(&inversion());
    captured.events.drain(..6);
    captured.truncated = true;
    let cut = scene(&captured, |_| true);
    assert!(cut.rows.iter().flat_map(|row| &row.stretches).all(|stretch| stretch.start >= 520), "{cut:#?}");
    captured.events.clear();
    assert!(scene(&captured, |_| true).rows.iter().all(|row| row.stretches.is_empty()));
}

#[test]
fn gives_rows_to_those_with_greatest_cost() {
    let mut events = inversion();
    let last = events.pop().unwrap();
    for irq in 0..40 {
        let time = 1_030 + u64::from(irq) * 2;
        events.push(Event { time, cpu: 0, by: 7, kind: Kind::IrqEntry { irq: 100 + irq } });
        events.push(Event { time: time + 1, cpu: 0, by: 7, kind: Kind::IrqExit { irq: 100 + irq } });
    }
    events.push(last);
    let captured = worst(&events);
    let scene = scene(&captured, |_| true);
    assert_eq!(scene.rows.len(), MAX_ROWS);
    // In addition to the actor that displaced the job, there are the holder and the one that
    // displaced the holder.
    let causes = captured.job.interference_causes.iter().filter(|cause| cause.actor != Actor::Others).count();
    assert_eq!(scene.rows.len() + scene.left_out, 2 + causes);
    assert!(scene.rows.iter().any(|row| row.actor == Actor::Irq(30)));
}

#[test]
fn shows_handler_that_ran_before_job_woke() {
    let mut events = inversion();
    let entry = Event { time: 95, cpu: 0, by: 9, kind: Kind::VectorEntry { vector: 236 } };
    let exit = Event { time: 104, cpu: 0, by: 9, kind: Kind::VectorExit { vector: 236 } };
    events.insert(1, entry);
    events.insert(3, exit);
    let scene = scene(&worst(&events), |_| true);
    let timer = scene.rows.iter().find(|row| row.actor == Actor::Vector(236)).unwrap();
    assert_eq!(timer.stretches, [stretch(100, 104, Some(0), Some(Phase::Jitter))]);
    let low = &scene.rows[0].stretches[0];
    assert_eq!(*low, stretch(104, 110, Some(0), Some(Phase::Jitter)));
    assert_eq!(scene.wakes[0].row, scene.rows.iter().position(|row| row.actor == Actor::Vector(236)));
}
