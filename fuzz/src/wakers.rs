//! Wakers of async tasks, which any thread may wake, even after the task has ended.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::random::Random;

static WAKERS: Mutex<Vec<Waker>> = Mutex::new(Vec::new());

/// Maximum number of stored wakers.
const CAPACITY: usize = 32;

/// Wakes a random task.
pub(crate) fn wake(random: &mut Random) {
    let waker = {
        let wakers = WAKERS.lock().unwrap_or_else(PoisonError::into_inner);
        (!wakers.is_empty()).then(|| random.pick(&wakers).clone())
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Waits for a wake-up of the task.
#[derive(Debug, Default)]
pub struct Parked(bool);

impl Future for Parked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        let mut wakers = WAKERS.lock().unwrap_or_else(PoisonError::into_inner);
        if wakers.len() >= CAPACITY {
            wakers.swap_remove(0);
        }
        wakers.push(cx.waker().clone());
        Poll::Pending
    }
}

/// Lets other tasks of its level run first.
#[derive(Debug, Default)]
pub struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
