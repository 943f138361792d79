use super::*;
use crate::event::Task;
use crate::jobs::Config;
use crate::stats::Watch;

const HIGH: Task = Task { id: 7, priority: 10 };
const LOW: Task = Task { id: 9, priority: 30 };
const IRQ: Task = Task { id: 24, priority: 5 };
const IDLE: Task = Task { id: 0, priority: 120 };

/// 7 waits for a futex that 9 holds, which 24 displaces; interrupt 30 displaces 7.
pub(in super::super) fn inversion() -> Vec<Event> {
    let switch = |from: Task, left, to| Kind::Switch { from, left, to };
    let event = |time, by: Task, kind| Event { time, cpu: 0, by: by.id, kind };
    vec![
        event(10, LOW, Kind::SyscallExit { number: 1 }),
        event(100, LOW, Kind::Waking { task: HIGH, cpu: 0 }),
        event(110, LOW, switch(LOW, Left::Runnable, HIGH)),
        event(150, HIGH, Kind::FutexEnter { word: 0x1000, operation: 128, value: 2 }),
        event(160, HIGH, switch(HIGH, Left::Sleeping, LOW)),
        event(200, LOW, Kind::Waking { task: IRQ, cpu: 0 }),
        event(210, LOW, switch(LOW, Left::Runnable, IRQ)),
        event(520, IRQ, switch(IRQ, Left::Sleeping, LOW)),
        event(905, LOW, Kind::Waking { task: HIGH, cpu: 0 }),
        event(910, LOW, switch(LOW, Left::Runnable, HIGH)),
        event(962, HIGH, Kind::FutexExit { result: 0 }),
        event(1_000, HIGH, Kind::IrqEntry { irq: 30 }),
        event(1_020, HIGH, Kind::IrqExit { irq: 30 }),
        event(1_134, HIGH, switch(HIGH, Left::Sleeping, IDLE)),
    ]
}

pub(in super::super) fn worst(events: &[Event]) -> Whole {
    let mut watch = Watch::new(Config { segments: true, ..Config::default() }, 1);
    events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
    let task = watch.tasks().iter().find(|task| task.key().actor == Actor::Thread(7)).expect("it has a job");
    task.worst()[0].clone()
}

fn piece(start: u64, end: u64, cpu: Option<u16>, cost: Option<Phase>) -> Piece {
    Piece { start, end, cpu, cost }
}

#[test]
fn everybody_is_on_the_scene_with_what_it_cost() {
    let scene = scene(&worst(&inversion()));
    let [low, irq_thread, irq] = scene.rows.as_slice() else { panic!("{scene:#?}") };
    assert_eq!(
        [low.actor, irq_thread.actor, irq.actor],
        [Actor::Thread(9), Actor::Thread(24), Actor::Irq(30)]
    );
    let (cpu, blocking) = (Some(0), Some(Phase::Blocking));
    let expected = [
        piece(100, 110, cpu, Some(Phase::Jitter)),
        piece(110, 160, None, None),
        piece(160, 210, cpu, blocking),
        piece(210, 520, None, None),
        piece(520, 910, cpu, blocking),
        piece(910, 1_134, None, None),
    ];
    assert_eq!(low.pieces, expected);
    assert_eq!(low.holds, [(150, 905, 0)]);
    assert_eq!(irq_thread.pieces, [piece(200, 210, None, None), piece(210, 520, cpu, blocking)]);
    assert_eq!(irq.pieces, [piece(1_000, 1_020, cpu, Some(Phase::Interference))]);
    let wakes: Vec<_> = scene.wakes.iter().map(|wake| (wake.time, wake.row)).collect();
    assert_eq!(wakes, [(100, Some(0)), (905, Some(0))]);
    assert_eq!(scene.left_out, 0);
}

#[test]
fn what_was_before_the_events_that_are_left_is_not_made_up() {
    let mut whole = worst(&inversion());
    whole.events.drain(..6);
    whole.truncated = true;
    let cut = scene(&whole);
    assert!(cut.rows.iter().flat_map(|row| &row.pieces).all(|piece| piece.start >= 520), "{cut:#?}");
    whole.events.clear();
    assert!(scene(&whole).rows.iter().all(|row| row.pieces.is_empty()));
}

#[test]
fn of_many_the_greatest_have_rows() {
    let mut events = inversion();
    let last = events.pop().unwrap();
    for irq in 0..40 {
        let time = 1_030 + u64::from(irq) * 2;
        events.push(Event { time, cpu: 0, by: 7, kind: Kind::IrqEntry { irq: 100 + irq } });
        events.push(Event { time: time + 1, cpu: 0, by: 7, kind: Kind::IrqExit { irq: 100 + irq } });
    }
    events.push(last);
    let whole = worst(&events);
    let scene = scene(&whole);
    assert_eq!(scene.rows.len(), MAX_ROWS);
    // Beside who displaced it there are the holder and the one that displaced that.
    let causes = whole.job.interference_causes.iter().filter(|cause| cause.actor != Actor::Others).count();
    assert_eq!(scene.rows.len() + scene.left_out, 2 + causes);
    assert!(scene.rows.iter().any(|row| row.actor == Actor::Irq(30)));
}

#[test]
fn a_handler_that_woke_the_job_was_there_before() {
    let mut events = inversion();
    let entry = Event { time: 95, cpu: 0, by: 9, kind: Kind::VectorEntry { vector: 236 } };
    let exit = Event { time: 104, cpu: 0, by: 9, kind: Kind::VectorExit { vector: 236 } };
    events.insert(1, entry);
    events.insert(3, exit);
    let scene = scene(&worst(&events));
    let timer = scene.rows.iter().find(|row| row.actor == Actor::Vector(236)).unwrap();
    assert_eq!(timer.pieces, [piece(100, 104, Some(0), Some(Phase::Jitter))]);
    let low = &scene.rows[0].pieces[0];
    assert_eq!(*low, piece(104, 110, Some(0), Some(Phase::Jitter)));
    assert_eq!(scene.wakes[0].row, scene.rows.iter().position(|row| row.actor == Actor::Vector(236)));
}
