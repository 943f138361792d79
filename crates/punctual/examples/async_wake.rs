//! A custom future: a mailbox that a task empties as it is filled.
//!
//! A wake is a preemption point like a spawn. `reader` is above `writer`, so each letter is read
//! before `post` returns; but inside the lock the level is the ceiling, and the letter is read when
//! the lock is released.

#[punctual::app]
mod app {
    use std::collections::VecDeque;
    use std::future::poll_fn;
    use std::task::{Poll, Waker};

    use punctual::prelude::*;

    /// Letters, and the waker of a task that waits for one.
    #[derive(Default)]
    struct Mailbox {
        letters: VecDeque<&'static str>,
        reader: Option<Waker>,
    }

    impl Mailbox {
        fn put(&mut self, letter: &'static str) -> Option<Waker> {
            self.letters.push_back(letter);
            self.reader.take()
        }
    }

    #[shared]
    struct Shared {
        mailbox: Mailbox,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        reader::spawn().unwrap();
        writer::spawn().unwrap();
        (Shared { mailbox: Mailbox::default() }, Local {})
    }

    #[task(priority = 2, shared = [mailbox])]
    async fn reader(mut cx: reader::Context) {
        loop {
            let letter = poll_fn(|context| {
                cx.shared.mailbox.lock(|mailbox| match mailbox.letters.pop_front() {
                    Some(letter) => Poll::Ready(letter),
                    None => {
                        mailbox.reader = Some(context.waker().clone());
                        Poll::Pending
                    }
                })
            });
            match letter.await {
                "end" => return punctual::shutdown(),
                letter => println!("  reader: {letter}"),
            }
        }
    }

    #[task(priority = 1, shared = [mailbox])]
    fn writer(mut cx: writer::Context) {
        println!("writer: posts a letter");
        let waker = cx.shared.mailbox.lock(|mailbox| mailbox.put("hello"));
        waker.inspect(Waker::wake_by_ref);
        println!("writer: posts another, and wakes inside the lock");
        cx.shared.mailbox.lock(|mailbox| {
            mailbox.put("again").inspect(Waker::wake_by_ref);
            println!("writer: not read yet");
        });
        println!("writer: ends");
        let waker = cx.shared.mailbox.lock(|mailbox| mailbox.put("end"));
        waker.inspect(Waker::wake_by_ref);
    }
}
