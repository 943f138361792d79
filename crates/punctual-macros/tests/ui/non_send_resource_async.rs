#[punctual::app]
mod app {
    use std::rc::Rc;

    use punctual::prelude::*;

    #[shared]
    struct Shared {
        shared: Rc<u32>,
    }

    #[local]
    struct Local {
        local: Rc<u32>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared { shared: Rc::new(0) }, Local { local: Rc::new(0) })
    }

    #[task(shared = [shared])]
    async fn locks(mut cx: locks::Context) {
        std::future::ready(()).await;
        cx.shared.shared.lock(|_| ());
    }

    #[task(local = [local])]
    async fn has(cx: has::Context) {
        std::future::ready(()).await;
        *cx.local.local = Rc::new(1);
    }
}
