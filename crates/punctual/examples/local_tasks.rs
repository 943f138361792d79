//! Local tasks share values that must not leave a thread.
//!
//! A shelf of an `Rc` and a `RefCell` is not `Send`. `opens` creates one and passes it to two local
//! tasks, which can only be spawned by tasks of their level, through the spawner in their context.
//! All jobs of a level with local tasks run on one thread, and their remaining values are dropped
//! there at the end of the run; so the future of `opens`, which is not a local task, may hold the
//! shelf across its waits as well.

#[punctual::app]
mod app {
    use std::cell::RefCell;
    use std::rc::Rc;

    use punctual::prelude::*;

    type Shelf = Rc<RefCell<Vec<&'static str>>>;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        opens::spawn("the shop").unwrap();
        (Shared {}, Local {})
    }

    #[task(priority = 1)]
    async fn opens(cx: opens::Context, name: &'static str) {
        let shelf = Shelf::default();
        cx.local_spawner.fills(Rc::clone(&shelf), "bread").unwrap();
        cx.local_spawner.sells(Rc::clone(&shelf)).unwrap();
        println!("{name} is open");
        // Much longer than the others take, also without real-time priorities.
        punctual::delay(50.millis()).await;
        // A rejected spawn returns its arguments.
        let refused = cx.local_spawner.sells(shelf).unwrap_err().into_inner();
        println!("{} have the shelf", Rc::strong_count(&refused));
        punctual::shutdown();
    }

    #[task(priority = 1, local_task)]
    async fn fills(_: fills::Context, shelf: Shelf, what: &'static str) {
        for _ in 0..2 {
            println!("here is {what}");
            shelf.borrow_mut().push(what);
            punctual::delay(2.millis()).await;
        }
    }

    #[task(priority = 1, local_task)]
    async fn sells(_: sells::Context, shelf: Shelf) {
        loop {
            if let Some(what) = shelf.borrow_mut().pop() {
                println!("{what} is sold");
            }
            punctual::delay(1.millis()).await;
        }
    }
}
