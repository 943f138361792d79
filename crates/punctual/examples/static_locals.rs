//! Locals of `init` and of `idle` are `&'static mut`.
//!
//! `init` splits a buffer that it declares and passes half of it to `fill`. `idle` gives its own
//! buffer away in a message, which only a `'static` reference allows; `keep` is above `idle`, so it
//! runs at the spawn.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        front: &'static mut [u8],
        back: &'static mut [u8],
    }

    #[init(local = [buffer: [u8; 8] = [1; 8]])]
    fn init(cx: init::Context) -> (Shared, Local) {
        let (front, back) = cx.local.buffer.split_at_mut(4);
        fill::spawn().unwrap();
        (Shared {}, Local { front, back })
    }

    #[idle(local = [back, buffer: [u8; 2] = [7; 2]])]
    fn idle(cx: idle::Context) {
        let buffer: &'static mut [u8; 2] = cx.local.buffer;
        println!("idle: {:?}", cx.local.back);
        buffer[0] = 9;
        keep::spawn(buffer).unwrap();
        punctual::shutdown();
    }

    #[task(local = [front])]
    fn fill(cx: fill::Context) {
        cx.local.front.fill(2);
        println!("fill: {:?}", cx.local.front);
    }

    #[task]
    fn keep(_: keep::Context, buffer: &'static mut [u8; 2]) {
        println!("keep: {buffer:?}");
    }
}
