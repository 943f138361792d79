//! The one mistake, in `tick`, is the one error: what depends on the generated code finds it.

use punctual::prelude::*;

#[punctual::app(main = false)]
mod app {
    use punctual::prelude::*;
    use std::collections::BTreeMap;

    #[shared]
    pub struct Shared {
        #[lock_free]
        pub table: BTreeMap<u32, u32>,
    }

    #[local]
    pub struct Local {
        pub handle: Option<tock::SpawnHandle>,
    }

    #[init]
    fn init(_: init::Context, table: BTreeMap<u32, u32>) -> (Shared, Local) {
        (Shared { table }, Local { handle: None })
    }

    #[task(period = 10.millis(), priority = 29, shared = [table])]
    fn tick(cx: tick::Context) {
        cx.shared.table.insert(1, 2);
    }

    #[task]
    fn tock(_: tock::Context, count: u32, name: &'static str) {
        helper(count, name);
    }

    fn helper(count: u32, name: &'static str) {
        if let Ok(handle) = tock::spawn_after(1.secs(), count, name) {
            assert_eq!(handle.cancel(), Ok((count, name)));
        }
    }

    unsafe extern "C" {
        safe fn abs(n: i32) -> i32;
    }

    pub fn absolute(n: i32) -> i32 {
        abs(n)
    }
}

fn main() {
    app::tock::spawn(1, "one").unwrap();
    let config = punctual::Config::new().until(1.secs());
    app::run(config, [(1, 2)].into()).unwrap();
    assert_eq!(app::absolute(-1), 1);
}
