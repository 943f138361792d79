mod outer {
    pub type Word = u32;

    pub mod inner {
        #[punctual::app(main = false)]
        pub(crate) mod pump {
            use super::super::Word;

            #[shared]
            pub struct Resources {
                pub words: Word,
            }

            #[local]
            pub struct Own {}

            #[init]
            fn init(_: init::Context) -> (Resources, Own) {
                super::start();
                (Resources { words: 0 }, Own {})
            }

            #[task(shared = [words])]
            fn stroke(cx: stroke::Context, words: super::super::Word) {
                use punctual::prelude::*;
                let mut total = cx.shared.words;
                total.lock(|total| *total += words);
                punctual::shutdown();
            }
        }

        fn start() {
            pump::stroke::spawn(4).unwrap();
        }
    }
}

#[test]
fn runs() {
    let report = outer::inner::pump::run(punctual::Config::from_env()).unwrap();
    assert_eq!(report.task("stroke").unwrap().jobs, 1);
}
