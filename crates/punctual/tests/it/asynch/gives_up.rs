//! How waits for descriptors end: dropped, rejected, with another waker, or left behind at the end
//! of a run.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, OnceLock};

use punctual::Readiness;
use punctual::report::Outcome;

use crate::asynch::readiness::{add, both, counter, take};

#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Dropped before the event, repeatedly, and just after it.
    GivenUp,
    /// A descriptor that cannot be waited for.
    Refused,
    /// Polled with one waker, and then with another.
    AnotherWaker,
    /// A future is never dropped.
    Leaked,
    /// A future of one run is dropped in the next.
    Kept,
    /// The app ends during the wait.
    LeftBehind,
    /// There is one slot.
    TooMany,
}

static KEPT: Mutex<Option<Readiness<'static>>> = Mutex::new(None);

/// Returns a descriptor that is never closed.
fn lasting() -> &'static OwnedFd {
    static LASTING: OnceLock<OwnedFd> = OnceLock::new();
    LASTING.get_or_init(counter)
}

fn closed() -> BorrowedFd<'static> {
    // SAFETY: the number is above the limit of any process, so it refers to no file.
    unsafe { BorrowedFd::borrow_raw(i32::MAX) }
}

#[punctual::app(main = false)]
mod app {
    use std::future::Future;
    use std::os::fd::OwnedFd;
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use punctual::TimeoutError;
    use punctual::prelude::*;

    use super::{KEPT, Manner, add, closed, counter, lasting, take};

    #[shared]
    struct Shared {
        event: OwnedFd,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context, manner: Manner) -> (Shared, Local) {
        waits::spawn(manner).unwrap();
        (Shared { event: counter() }, Local {})
    }

    /// Polls for the first time, with a waker that does nothing.
    fn begin(wait: impl Future) {
        assert!(pin!(wait).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    #[task(priority = 2, waits = 1, shared = [&event])]
    async fn waits(cx: waits::Context, manner: Manner) {
        let event = cx.shared.event;
        let mut wait = pin!(punctual::readable(event));
        match manner {
            Manner::GivenUp => {
                for _ in 0..200 {
                    let given_up = punctual::timeout_after(10.micros(), punctual::readable(event)).await;
                    assert_eq!(given_up.unwrap_err(), TimeoutError);
                }
                for round in 0..200 {
                    let mut wait = punctual::readable(event);
                    begin(&mut wait);
                    add(event);
                    if round % 2 == 0 {
                        punctual::delay(1.micros()).await;
                    }
                    drop(wait);
                    assert_eq!(take(event), Some(1));
                }
            }
            Manner::Refused => {
                let file = std::fs::File::open("/proc/self/exe").expect("it is there");
                punctual::readable(&file).await.expect("it is ready at once");
                punctual::writable(&file).await.expect("it is ready at once");
                let error = punctual::readable(&closed()).await.unwrap_err();
                assert_eq!(error.raw_os_error(), Some(9), "it is EBADF");
            }
            Manner::AnotherWaker => {
                begin(wait.as_mut());
                adds::spawn().unwrap();
                wait.as_mut().await.expect("an eventfd can be waited for");
                assert_eq!(take(event), Some(1));
                // The event occurs before the second one waits. Polled once more, it waits again.
                begin(wait.as_mut());
                add(event);
                wait.as_mut().await.expect("an eventfd can be waited for");
                assert_eq!(take(event), Some(1));
            }
            Manner::Leaked => {
                let mut leaked = punctual::readable(event);
                begin(&mut leaked);
                std::mem::forget(leaked);
            }
            Manner::Kept => {
                let retained = KEPT.lock().unwrap().take();
                begin(wait.as_mut());
                drop(retained);
                add(event);
                wait.as_mut().await.expect("an eventfd can be waited for");
                let mut next = punctual::readable(lasting());
                begin(Pin::new(&mut next));
                *KEPT.lock().unwrap() = Some(next);
            }
            Manner::LeftBehind => {
                begin(wait.as_mut());
                punctual::shutdown();
                wait.as_mut().await.expect("it never comes here");
                unreachable!("nobody adds");
            }
            Manner::TooMany => {
                begin(wait.as_mut());
                begin(punctual::readable(event));
            }
        }
        punctual::shutdown();
    }

    #[task(priority = 1, shared = [&event])]
    fn adds(cx: adds::Context) {
        add(cx.shared.event);
    }
}

#[test]
fn every_end_of_wait_frees_slot() {
    let _alone = crate::alone();
    use Manner::{AnotherWaker, GivenUp, Kept, Leaked, LeftBehind, Refused, TooMany};
    for config in [both(), both()].into_iter().flatten() {
        for manner in [GivenUp, Refused, AnotherWaker, Leaked, Kept, LeftBehind] {
            let report = app::run(config.clone(), manner).expect("the app starts");
            assert_eq!(report.outcome, Outcome::Shutdown, "{manner:?}");
        }
        let report = app::run(config, TooMany).expect("the app starts");
        let Outcome::Panicked { message, .. } = report.outcome else { panic!("{:?}", report.outcome) };
        assert!(message.contains("more than 1 descriptors at once; raise `waits`"), "{message}");
    }
    // The last one belongs to no run.
    drop(KEPT.lock().unwrap().take());
}
