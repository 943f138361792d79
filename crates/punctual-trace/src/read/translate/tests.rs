use super::*;
use crate::event::{Comm, Kind, Noise, Section, SwitchOut, Task};

fn format(path: &str) -> EventFormat {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/events/");
    let text = std::fs::read(format!("{root}{path}/format")).unwrap();
    EventFormat::parse(path.split('/').next().unwrap(), &text).unwrap()
}

/// Returns a record of that event with these fields, and noise in the irrelevant ones.
fn record(order: Order, format: &EventFormat, values: &[(&str, u64)]) -> Vec<u8> {
    let end = format.fields.iter().map(|field| field.offset + field.size).max().unwrap();
    let mut bytes = vec![0xa5; usize::from(end)];
    let id = [("common_type", u64::from(format.id)), ("common_pid", 99)];
    for (name, value) in id.iter().chain(values) {
        let field = format.field(name).unwrap();
        let (at, size) = (usize::from(field.offset), usize::from(field.size));
        let number = match order {
            Order::Little => value.to_le_bytes()[..size].to_vec(),
            Order::Big => value.to_be_bytes()[8 - size..].to_vec(),
        };
        bytes[at..at + size].copy_from_slice(&number);
    }
    bytes
}

/// Returns the event of such a record: in either byte order, by itself or with others after it,
/// with its fields at the kernel's offsets or at large ones.
fn kind(path: &str, values: &[(&str, u64)]) -> Kind {
    let near = format(path);
    let mut far = near.clone();
    let own = far.fields.iter_mut().filter(|field| !field.name.starts_with("common_"));
    own.for_each(|field| field.offset += REACH as u16);
    let mut kinds = Vec::new();
    for (order, format) in
        [Order::Little, Order::Big].into_iter().flat_map(|order| [(order, &near), (order, &far)])
    {
        let mut translator = Translator::new(order, std::slice::from_ref(format), &[0xff0]);
        let mut events = Vec::new();
        let mut bytes = record(order, format, values);
        translator.translate(1, &Record::new(5, &bytes), &mut events).unwrap();
        // One byte less than the last field that it uses is an error; unused bytes may be missing.
        let needs = usize::from(translator.table[usize::from(format.id)].needs);
        let short = Record::new(5, &bytes[..needs - 1]);
        let error = translator.translate(1, &short, &mut events).unwrap_err();
        assert_eq!(error, ShortRecord { event: Some(format.id), needs, has: needs - 1 });
        let length = bytes.len();
        bytes.resize(length + HEAD, 0x5a);
        let followed = Record { time: 5, offset: 0, window: &bytes, length };
        translator.translate(1, &followed, &mut events).unwrap();
        let error =
            translator.translate(1, &Record { length: needs - 1, ..followed }, &mut events).unwrap_err();
        assert_eq!(error, ShortRecord { event: Some(format.id), needs, has: needs - 1 });
        events.retain(|event| !matches!(event.kind, Kind::Named { .. }));
        assert_eq!(events.len(), 2, "{events:?}");
        for event in events {
            assert_eq!((event.time, event.cpu, event.by), (5, 1, 99));
            kinds.push(event.kind);
        }
    }
    assert!(kinds.iter().all(|kind| *kind == kinds[0]), "{kinds:?}");
    kinds[0]
}

#[test]
fn translates_each_event_type() {
    let woken = &[("pid", 411), ("prio", 40), ("target_cpu", 3)][..];
    let task = Task { id: 411, priority: 40 };
    assert_eq!(kind("sched/sched_waking", woken), Kind::Waking { task, cpu: 3 });
    assert_eq!(kind("sched/sched_wakeup", woken), Kind::Wakeup { task, cpu: 3, new: false });
    assert_eq!(kind("sched/sched_wakeup_new", woken), Kind::Wakeup { task, cpu: 3, new: true });
    let switch = [
        ("prev_pid", 411),
        ("prev_prio", -1i64 as u64),
        ("prev_state", 1),
        ("next_pid", 17),
        ("next_prio", 120),
    ];
    let from = Task { id: 411, priority: -1 };
    let to = Task { id: 17, priority: 120 };
    assert_eq!(kind("sched/sched_switch", &switch), Kind::Switch { from, reason: SwitchOut::Sleeping, to });
    let migrate = [("pid", 411), ("prio", 40), ("orig_cpu", 1), ("dest_cpu", 2)];
    assert_eq!(kind("sched/sched_migrate_task", &migrate), Kind::Migrate { task, from: 1, to: 2 });
    let inherit = [("pid", 411), ("oldprio", 120), ("newprio", 40)];
    assert_eq!(kind("sched/sched_pi_setprio", &inherit), Kind::Inherit { task: 411, old: 120, new: 40 });
    assert_eq!(kind("irq/irq_handler_entry", &[("irq", 24)]), Kind::IrqEntry { irq: 24 });
    assert_eq!(kind("irq/irq_handler_exit", &[("irq", 24)]), Kind::IrqExit { irq: 24 });
    assert_eq!(kind("irq/softirq_entry", &[("vec", 1)]), Kind::SoftirqEntry { softirq: 1 });
    assert_eq!(kind("irq/softirq_exit", &[("vec", 1)]), Kind::SoftirqExit { softirq: 1 });
    let vector = 236;
    assert_eq!(kind("irq_vectors/local_timer_entry", &[("vector", 236)]), Kind::VectorEntry { vector });
    assert_eq!(kind("irq_vectors/reschedule_exit", &[("vector", 236)]), Kind::VectorExit { vector });
    let timer = 0xffff_8880_0000_1000;
    let start = [("hrtimer", timer), ("expires", 7_000_000_000)];
    assert_eq!(kind("timer/hrtimer_start", &start), Kind::TimerStart { timer, expires: 7_000_000_000 });
    let expire = [("hrtimer", timer), ("now", 8)];
    assert_eq!(kind("timer/hrtimer_expire_entry", &expire), Kind::TimerExpire { timer, now: 8 });
    assert_eq!(kind("timer/hrtimer_expire_exit", &[("hrtimer", timer)]), Kind::TimerExpired { timer });
    let begin = [("lock_addr", timer), ("flags", 32)];
    assert_eq!(kind("lock/contention_begin", &begin), Kind::ContentionBegin { lock: timer, flags: 32 });
    assert_eq!(kind("lock/contention_end", &[("lock_addr", timer)]), Kind::ContentionEnd { lock: timer });
}

#[test]
fn translates_system_calls() {
    let word = 0x7fff_0000_1234;
    let enter = [("uaddr", word), ("op", 134), ("val", 2)];
    let futex = Kind::FutexEnter { word, operation: 134, value: 2 };
    assert_eq!(kind("syscalls/sys_enter_futex", &enter), futex);
    let wait = [("uaddr", word), ("val", 2), ("flags", 128 | 2)];
    let futex = Kind::FutexEnter { word, operation: 9 | 128, value: 2 };
    assert_eq!(kind("syscalls/sys_enter_futex_wait", &wait), futex);
    let exit = [("ret", -110i64 as u64)];
    assert_eq!(kind("syscalls/sys_exit_futex", &exit), Kind::FutexExit { result: -110 });
    let sleep = [("__syscall_nr", 230)];
    assert_eq!(kind("syscalls/sys_enter_clock_nanosleep", &sleep), Kind::SyscallEnter { number: 230 });
    assert_eq!(kind("syscalls/sys_exit_clock_nanosleep", &sleep), Kind::SyscallExit { number: 230 });
    assert_eq!(kind("raw_syscalls/sys_enter", &[("id", 230)]), Kind::SyscallEnter { number: 230 });
    assert_eq!(kind("ftrace/funcgraph_entry", &[("func", 0xff0)]), Kind::ScheduleEnter);
    assert_eq!(kind("ftrace/funcgraph_exit", &[("func", 0xff0)]), Kind::ScheduleExit);
}

#[test]
fn counts_unknown_events() {
    let formats = [format("ftrace/print"), format("ftrace/funcgraph_entry")];
    let mut translator = Translator::new(Order::Little, &formats, &[1]);
    let mut events = Vec::new();
    let print = record(Order::Little, &formats[0], &[]);
    let other = record(Order::Little, &formats[1], &[("func", 2)]);
    for bytes in [&print, &print, &other] {
        translator.translate(0, &Record::new(1, bytes), &mut events).unwrap();
    }
    assert!(events.is_empty());
    assert_eq!(translator.skipped().collect::<Vec<_>>(), [(formats[0].id, 2), (formats[1].id, 1)]);
    let error = translator.translate(0, &Record::new(1, &[5]), &mut events).unwrap_err();
    assert_eq!((error.event, error.has), (None, 1));
}

#[test]
fn bounds_memory_for_large_event_ids() {
    let mut format = format("irq/irq_handler_entry");
    format.fields.iter_mut().filter(|field| field.name == "common_type").for_each(|field| field.size = 8);
    let mut translator = Translator::new(Order::Little, &[format], &[]);
    translator.translate(0, &Record::new(1, &[0xfe; 64]), &mut Vec::new()).unwrap();
    assert_eq!(translator.skipped().collect::<Vec<_>>(), [(0xfefe, 1)]);
}

#[test]
fn skips_and_names_event_without_required_fields() {
    let mut format = format("sched/sched_waking");
    format.fields.retain(|field| field.name != "target_cpu");
    let translator = Translator::new(Order::Little, &[format], &[]);
    assert!(translator.incomplete()[0].contains("sched:sched_waking has no field `target_cpu`"));
}

#[test]
fn names_threads_before_first_naming_event() {
    let format = format("sched/sched_switch");
    let mut translator = Translator::new(Order::Little, std::slice::from_ref(&format), &[]);
    let mut bytes = record(Order::Little, &format, &[("prev_pid", 9), ("next_pid", 17)]);
    let mut put = |field: &str, name: &str| {
        let comm = usize::from(format.field(field).unwrap().offset);
        bytes[comm..comm + 16].copy_from_slice(name.as_bytes());
        let mut events = Vec::new();
        translator.translate(0, &Record::new(1, &bytes), &mut events).unwrap();
        assert!(matches!(events.pop().unwrap().kind, Kind::Switch { .. }));
        let name = |event: Event| match event.kind {
            Kind::Named { thread, name } => (thread, name.text().into_owned()),
            kind => panic!("{kind:?}"),
        };
        events.into_iter().map(name).collect::<Vec<_>>()
    };
    let named = |thread, name: &str| (thread, name.to_owned());
    put("prev_comm", "cat\0\0\0\0\0\0\0\0\0\0\0\0\0");
    assert_eq!(put("next_comm", "bash\0aaaaaaaaaaa"), [named(17, "bash")]);
    assert_eq!(put("next_comm", "level 4\0\0\0\0\0\0\0\0\0"), [named(17, "level 4")]);
    assert_eq!(put("prev_comm", "tac\0\0\0\0\0\0\0\0\0\0\0\0\0"), [named(9, "tac"), named(17, "level 4")]);
    translator.threads_mut().insert_lines(b"411 logger thread\nnonsense\n");
    assert_eq!(translator.threads().get(17), Some(Comm::new("level 4")));
    assert_eq!(translator.threads().get(411), Some(Comm::new("logger thread")));
    assert_eq!(translator.threads().get(5), None);
}

#[test]
fn reads_tasks_and_jobs_from_markers() {
    let format = format("ftrace/raw_data");
    let mut translator = Translator::new(Order::NATIVE, std::slice::from_ref(&format), &[]);
    let mut events = Vec::new();
    let markers = [
        marker::name(3, "sample").to_vec(),
        marker::start(3, 77).to_vec(),
        marker::end(3).to_vec(),
        b"foreign bytes".to_vec(),
    ];
    for marker in markers {
        let id = u64::from(u32::from_ne_bytes(marker[..4].try_into().unwrap()));
        let mut bytes = record(Order::NATIVE, &format, &[("id", id)]);
        bytes.extend(&marker[4..]);
        translator.translate(0, &Record::new(1, &bytes), &mut events).unwrap();
    }
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [Kind::JobStart { task: 3, released: 77 }, Kind::JobEnd { task: 3 }]);
    assert_eq!(translator.tasks().get(3), Some("sample"));
}

#[test]
fn names_interrupts_by_their_events() {
    let (irq, timer) = (format("irq/irq_handler_entry"), format("irq_vectors/local_timer_entry"));
    for order in [Order::Little, Order::Big] {
        let mut translator = Translator::new(order, &[irq.clone(), timer.clone()], &[]);
        let mut translate = |bytes: &[u8]| {
            translator.translate(0, &Record::new(1, bytes), &mut Vec::new()).unwrap();
            translator.interrupts().changes()
        };
        let handler = |number, located: u64, name: &[u8]| {
            let mut bytes = record(order, &irq, &[("irq", number), ("name", located)]);
            bytes.extend(name);
            bytes
        };
        assert_eq!(translate(&handler(24, 5 << 16 | 16, b"eth0\0")), 1);
        // The first name stays, and bytes outside of the record are not part of a name.
        assert_eq!(translate(&handler(24, 4 << 16 | 16, b"usb\0")), 1);
        assert_eq!(translate(&handler(25, 40 << 16 | 16, b"usb\0")), 1);
        assert_eq!(translate(&handler(26, 4 << 16 | 4000, b"usb\0")), 1);
        assert_eq!(translate(&handler(4_000_000, 4 << 16 | 16, b"usb\0")), 1);
        assert_eq!(translate(&record(order, &timer, &[("vector", 236)])), 2);
        assert_eq!(translate(&record(order, &timer, &[("vector", 236)])), 2);
        assert_eq!(translate(&record(order, &timer, &[("vector", 40_000)])), 2);
        let interrupts = translator.interrupts();
        assert_eq!(interrupts.irqs().collect::<Vec<_>>(), [(24, "eth0")]);
        assert_eq!(interrupts.vectors().collect::<Vec<_>>(), [(236, "local_timer")]);
    }
}

/// From kernel 6.12, written after `trace/events/preemptirq.h` and `trace/events/osnoise.h`: the
/// available kernels lack them.
#[test]
fn translates_disabled_sections_and_noise() {
    use crate::write::encode::Encoder;

    let at = -5i64 as u64;
    let (interrupts, preemption) = (Section::Interrupts, Section::Preemption);
    let cases = [
        (
            "preemptirq/irq_disable",
            &[("caller_offs", at)][..],
            Kind::Disable { section: interrupts, caller: -5 },
        ),
        ("preemptirq/irq_enable", &[("caller_offs", 9)], Kind::Enable { section: interrupts, caller: 9 }),
        (
            "preemptirq/preempt_disable",
            &[("caller_offs", 9)],
            Kind::Disable { section: preemption, caller: 9 },
        ),
        ("preemptirq/preempt_enable", &[("caller_offs", 9)], Kind::Enable { section: preemption, caller: 9 }),
        ("osnoise/nmi_noise", &[("duration", 700)], Kind::Noise { source: Noise::Nmi, ns: 700 }),
        (
            "osnoise/irq_noise",
            &[("duration", 700), ("vector", 24)],
            Kind::Noise { source: Noise::Irq(24), ns: 700 },
        ),
        (
            "osnoise/softirq_noise",
            &[("duration", 700), ("vector", 3)],
            Kind::Noise { source: Noise::Softirq(3), ns: 700 },
        ),
        (
            "osnoise/thread_noise",
            &[("duration", 700), ("pid", 411)],
            Kind::Noise { source: Noise::Thread(411), ns: 700 },
        ),
    ];
    for (path, values, expected) in cases {
        assert_eq!(kind(path, values), expected);
        // And back.
        let formats = [format(path)];
        let (mut bytes, mut events) = (Vec::new(), Vec::new());
        let event = Event { time: 5, cpu: 1, by: 99, kind: expected };
        Encoder::new(Order::NATIVE, &formats).encode(&event, |_| None, &mut bytes).unwrap();
        let mut translator = Translator::new(Order::NATIVE, &formats, &[]);
        translator.translate(1, &Record::new(5, &bytes), &mut events).unwrap();
        assert_eq!(events, [event]);
    }
}
