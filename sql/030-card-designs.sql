-- 030: designs of cards that no product has can be removed. A right: it locks nothing.
grant delete on card_designs to scrip_service;
