//! A known load of interrupts and softirqs: timer expiries, and datagrams that a thread sends to
//! itself.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_trace::event::{Event, Kind, Tid};
use punctual_trace::jobs::{Actor, Bounds};

use crate::workloads::{MS, Measured, ROUNDS, me, now, perform, sleep_until, thread};

/// Expiries of the timer, each of them an interrupt, and datagrams, each of them a softirq.
const EXPIRIES: u64 = 10;
const DATAGRAMS: u64 = 20;
const LENGTH: u64 = 12 * MS;
const NET_RX: u8 = 3;

struct Truth {
    thread: Tid,
    /// End of each round, and its number of signals.
    rounds: Vec<(u64, u64)>,
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// A timer that sends SIGUSR1 to the calling thread.
struct Timer(libc::timer_t);

impl Timer {
    fn new() -> Self {
        // SAFETY: all-zero is valid for these structs, and the required fields are filled in. The
        // handler accesses only an atomic.
        unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            action.sa_sigaction = count as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
            let mut event = std::mem::zeroed::<libc::sigevent>();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGUSR1;
            event.sigev_notify_thread_id = me() as i32;
            let mut timer = std::mem::zeroed();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
            Self(timer)
        }
    }

    /// Expires once, after `ns` ns.
    fn set(&self, ns: u64) {
        let once = libc::timespec { tv_sec: 0, tv_nsec: ns as _ };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let time = libc::itimerspec { it_interval: never, it_value: once };
        // SAFETY: the timer exists, and `time` is valid.
        assert_eq!(unsafe { libc::timer_settime(self.0, 0, &time, std::ptr::null_mut()) }, 0);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer exists.
        unsafe { libc::timer_delete(self.0) };
    }
}

fn play() -> (Vec<Tid>, Truth) {
    let handle = thread("loaded", 20, || {
        let timer = Timer::new();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        let rounds = (0..ROUNDS).map(|_| {
            sleep_until(now() + 5 * MS);
            let (start, before) = (now(), SIGNALS.load(Ordering::Relaxed));
            for step in 0..DATAGRAMS {
                if step * EXPIRIES % DATAGRAMS < EXPIRIES {
                    timer.set(100_000);
                }
                socket.send(&[0; 1_000]).unwrap();
                socket.recv(&mut [0; 1_000]).unwrap();
                while now() < start + (step + 1) * (LENGTH / DATAGRAMS) {
                    std::hint::spin_loop();
                }
            }
            (now(), SIGNALS.load(Ordering::Relaxed) - before)
        });
        let rounds = rounds.collect();
        sleep_until(now() + MS);
        (me(), rounds)
    });
    let (thread, rounds) = handle.join().unwrap();
    (vec![thread], Truth { thread, rounds })
}

/// Returns the time that handlers took of a CPU in an interval, and the numbers of vectors and of
/// softirqs of one kind, counted from the events alone.
fn handlers(events: &[Event], cpu: u16, from: u64, to: u64) -> (u64, u64, u64) {
    let (mut depth, mut since, mut sum, mut vectors, mut receives) = (0_u32, 0, 0, 0, 0);
    for event in events.iter().filter(|event| event.cpu == cpu) {
        let (entry, exit) = match event.kind {
            Kind::IrqEntry { .. } | Kind::SoftirqEntry { .. } | Kind::VectorEntry { .. } => (true, false),
            Kind::IrqExit { .. } | Kind::SoftirqExit { .. } | Kind::VectorExit { .. } => (false, true),
            _ => continue,
        };
        let inside = (from..=to).contains(&event.time);
        if entry {
            vectors += u64::from(inside && matches!(event.kind, Kind::VectorEntry { .. }));
            receives += u64::from(inside && event.kind == Kind::SoftirqEntry { softirq: NET_RX });
            if depth == 0 {
                since = event.time;
            }
            depth += 1;
        } else if exit && depth > 0 {
            depth -= 1;
            if depth == 0 {
                sum += event.time.min(to).saturating_sub(since.max(from));
            }
        }
    }
    (sum, vectors, receives)
}

#[test]
fn attributes_all_interrupt_time_of_trace() {
    perform("load", play, |played, truth| {
        let mut measured = Vec::new();
        for &(end, signals) in &truth.rounds {
            let Some(job) = played.job(truth.thread, end) else { continue };
            assert_eq!((job.first_cpu, job.migrations), (job.last_cpu, 0));
            let (sum, vectors, receives) = handlers(&played.events, job.first_cpu, job.start, job.end);
            let threads: u64 = of(&job.interference_causes, |actor| matches!(actor, Actor::Thread(_))).0;
            let Bounds::Exact(all) = job.interference else { panic!("{job:?}") };
            assert_eq!(all - threads, sum, "{job:?}");
            // Each expiry took an interrupt, and each datagram a softirq, in the job. A late timer
            // is armed again. Under PREEMPT_RT a thread of a lower priority sends the signals,
            // after the job: there only the first interrupt is certain.
            let fewest = u64::from(!under_preempt_rt());
            assert!((fewest..=EXPIRIES).contains(&signals), "{signals}");
            assert!(vectors >= signals.max(1) && receives >= DATAGRAMS, "{vectors} {receives}");
            let (_, times) = of(&job.interference_causes, |actor| actor == Actor::Softirq(NET_RX));
            assert_eq!(u64::from(times), receives);
            measured.push(Measured { what: "I by handlers", trace: all - threads, truth: sum });
        }
        measured
    });
}

fn under_preempt_rt() -> bool {
    punctual_process::kernel::Kernel::running().version.contains("PREEMPT_RT")
}

fn of(causes: &[punctual_trace::jobs::Cause], who: impl Fn(Actor) -> bool) -> (u64, u32) {
    let causes = causes.iter().filter(|cause| who(cause.actor));
    causes.fold((0, 0), |(ns, times), cause| (ns + cause.ns, times + cause.times))
}
