//! A locked resource, a message and a local have to be `Send`, but not `Sync`.
//!
//! `Cell` is not `Sync`. Under a lock it has one user at a time, and as a message it moves from
//! sender to receiver. `bar` swaps the cell that it receives with the one in the resource.

#[punctual::app]
mod app {
    use std::cell::Cell;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        cell: Cell<u32>,
    }

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (Shared { cell: Cell::new(1) }, Local {})
    }

    #[task(priority = 1, shared = [cell])]
    fn foo(mut cx: foo::Context) {
        let sent = cx.shared.cell.lock(|cell| Cell::new(cell.get() + 1));
        println!("foo sends {}", sent.get());
        bar::spawn(sent).expect("bar has a free slot");
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [cell])]
    fn bar(mut cx: bar::Context, received: Cell<u32>) {
        println!("bar receives {}", received.get());
        received.set(received.get() * 10);
        cx.shared.cell.lock(|cell| cell.swap(&received));
        println!("bar finds {}", received.get());
    }

    #[shutdown(shared = [cell])]
    fn shutdown(cx: shutdown::Context) {
        println!("in the end: {}", cx.shared.cell.get());
    }
}
