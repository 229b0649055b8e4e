"""Word tables of the `mixed` filler: topics, and the patterns that make sentences of them.

Every verb is a past form, so that it fits any subject; every `look` says something about a thing. No digits, no
questions, nothing addressed to the reader.
"""

from dataclasses import dataclass

PERSON, VERB, THING, PLACE, LOOK, TIME, ENDING, OPENING, REMARK = range(9)


@dataclass(frozen=True, slots=True)
class Topic:
    """What can be said about one field of everyday life."""

    people: tuple[str, ...]
    verbs: tuple[str, ...]
    things: tuple[str, ...]
    places: tuple[str, ...]
    looks: tuple[str, ...]


def _split(table: str) -> tuple[str, ...]:
    return tuple(" ".join(entry.split()) for entry in table.split("/"))


def _topic(people: str, verbs: str, things: str, places: str, looks: str) -> Topic:
    return Topic(_split(people), _split(verbs), _split(things), _split(places), _split(looks))


PATTERNS: tuple[tuple[str | int, ...], ...] = (
    (TIME, ", ", PERSON, " ", VERB, " ", THING, " ", PLACE, "."),
    (TIME, ", ", PERSON, " ", VERB, " ", THING, ENDING, "."),
    (PERSON, " ", VERB, " ", THING, " ", PLACE, ENDING, "."),
    (PERSON, " ", VERB, " ", THING, " ", TIME, ", and ", THING, " ", LOOK, "."),
    (PLACE, ", ", THING, " ", LOOK, ENDING, "."),
    (OPENING, ", ", PERSON, " ", VERB, " ", THING, " ", TIME, "."),
    (OPENING, ", ", THING, " ", LOOK, " ", TIME, ", and ", PERSON, " ", VERB, " ", THING, "."),
    (REMARK, " ", THING, " ", LOOK, ENDING, "."),
    (REMARK, " ", PERSON, " ", VERB, " ", THING, " ", PLACE, "."),
    ("while ", PERSON, " ", VERB, " ", THING, ", ", THING, " ", LOOK, " ", PLACE, "."),
    (PERSON, " ", VERB, " ", THING, " and then ", VERB, " ", THING, " ", PLACE, "."),
    (PERSON, " ", VERB, " ", THING, "; ", PLACE, ", ", THING, " ", LOOK, "."),
    (PERSON, " never ", VERB, " ", THING, " again, ", "but ", TIME, " ", THING, " ", LOOK, "."),
    ("after that, ", PERSON, " ", VERB, " ", THING, " ", PLACE, ENDING, "."),
)

TIMES = _split(
    """early in the spring / on most mornings / towards the end of summer / after the first frost / before the shops
    had opened / late in the afternoon / in the last week of autumn / on a grey Sunday / when the wind had dropped /
    during the long winter / just before dusk / at about noon / on the way home / for the better part of a week / a
    little after sunrise / in the quiet hours / between two showers / once the guests had left / that same evening / on
    market days / in an ordinary year / when the days grew shorter / all through the season / on the longest day / after
    supper / in the middle of the week / as soon as the light allowed / shortly before the holidays"""
)

ENDINGS = (
    "",
    "",
    "",
    "",
    ", much to the surprise of the neighbours",
    ", though hardly anyone noticed",
    " because the old way took too long",
    ", which pleased nearly everyone",
    " without any fuss",
    ", as had long been the custom",
    ", and that was the end of the matter",
    ", partly out of habit",
    " while the rain went on",
    ", even if it cost some patience",
    ", as far as anyone could tell",
    ", in spite of the forecast",
    ", just as in the years before",
    " although nobody had asked for it",
    ", and the talk soon turned to other things",
    ", with better results than expected",
)

OPENINGS = _split(
    """as it happened / in those years / more often than not / to begin with / by all accounts / with a little luck /
    for once / in the end / as usual / after some delay / on the whole / little by little / as a rule / by then / one
    way or another / according to the older people / without much talk / in good weather"""
)

REMARKS = _split(
    """most people agreed that / it was often said that / nobody doubted that / the local paper reported that / visitors
    liked to point out that / it turned out that / there was a rumour that / everyone could see that / a few letters
    mention that / it came as no surprise that / the older residents remembered that / it did not help that / it was a
    comfort that / one diary notes that"""
)

TOPICS: tuple[Topic, ...] = (
    _topic(  # gardening
        """the head gardener / a retired teacher / two sisters from the lane / the allotment club / a patient neighbour
        / the new tenant / several volunteers / the children next door / an old nurseryman / the parish groundsman""",
        "watered / pruned / admired / sheltered / moved / weeded around / sketched / mulched / looked after / tied up",
        """the climbing roses / a row of young pears / the bean rows / some tender seedlings / the box hedge / a bed of
        tulips / the old fig tree / the strawberry patch / the lavender / a dozen lettuces / the tomato plants / the
        overgrown border / the plum saplings / a tub of mint""",
        """behind the greenhouse / along the south wall / near the compost heap / beside the water butt / under the
        apple trees / in the walled garden / at the bottom of the slope / outside the potting shed / by the garden
        gate / next to the bee hives""",
        """recovered within days / came up stronger than before / suffered from the dry wind / attracted a cloud of
        bees / needed more light / stayed green into November / smelled of earth and rain / outgrew the canes / did
        poorly in the heavy clay / ripened later than usual""",
    ),
    _topic(  # harbours
        """the harbour master / a crew of five / the ferry captain / an off-duty pilot / the lock keeper / two retired
        fishermen / the crane driver / the night watch / a young deckhand / the owner of the chandlery""",
        "inspected / unloaded / repaired / waited for / painted / towed / kept an eye on / greased / photographed / moored",
        """the blue trawler / a leaking dinghy / the mail boat / a stack of crates / the swing bridge / the pilot launch
        / an empty barge / the old lightship / the mooring lines / a sailing cutter / the fuel pontoon / the dredger /
        several lobster pots / the slipway winch""",
        """at the outer mole / along the fish quay / beside the ice house / off the northern breakwater / in the dry
        dock / under the harbour lights / near the customs shed / at low water / behind the net lofts / by the lock
        gates""",
        """rocked gently on the swell / creaked in the current / smelled of tar and salt / stood out against the fog /
        gathered rust / drifted a few yards / came through the gale unharmed / blocked the channel for an hour / drew a
        small crowd / sat low in the water""",
    ),
    _topic(  # small towns
        """the mayor's assistant / a group of pensioners / the baker / the town council / a travelling salesman / the
        postmistress / two apprentices / the owner of the cinema / the volunteer brigade / a family from the hills""",
        "restored / walked past / argued about / decorated / visited / praised / measured / paid for / opened / swept",
        """the market hall / the stone fountain / the old signal box / the bandstand / the chapel roof / a narrow
        footbridge / the war memorial / the bus shelter / the town clock / an abandoned dairy / the village green / the
        corner shop / the school yard / the almshouses""",
        """at the end of the high street / opposite the bank / near the level crossing / on the edge of town / across
        the square / uphill from the church / beside the mill stream / behind the fire station / along the station
        road / around the corner""",
        """drew visitors from far away / had lost some of its charm / stayed just as it was / looked smaller than in the
        pictures / became a place to meet / needed a coat of paint / divided opinion / cost more than planned / survived
        the flood / stood empty for a while""",
    ),
    _topic(  # weather
        """the forecasters / a lighthouse family / the hill farmers / the morning commuters / an amateur observer / the
        road crews / a party of walkers / the ski patrol / the coastguard / the woman at the weather station""",
        "noticed / wrote down / cursed / enjoyed / waited out / described / predicted / underestimated / welcomed / survived",
        """the first snow / a warm front / the sudden hail / a week of drizzle / the morning mist / the thunderstorm / a
        dry spell / the northerly gale / the low clouds / an early thaw / a double rainbow / the black ice / the heat
        haze / a light breeze""",
        """over the eastern hills / along the coast / in the upper valley / above the tree line / across the plain /
        around the reservoir / on the far side of the pass / near the estuary / over the rooftops / out at sea""",
        """lasted longer than forecast / cleared by lunchtime / came without warning / kept people indoors / moved
        slowly to the south / broke all the records / melted into nothing / made the roads slippery / left puddles
        everywhere / changed the colour of the light""",
    ),
    _topic(  # railways
        """the signalman / a conductor on the night train / the station staff / two engineers / a party of trainspotters
        / the ticket inspector / the track gang / a sleepy passenger / the dining car cook / the branch line manager""",
        "cleaned / checked / recognised / painted / photographed / remembered / looked after / inspected / sketched / repaired",
        """the express / a goods wagon / the old steam engine / the sleeping car / the signal lamps / a broken coupling /
        the waiting room / the luggage van / the railcar / the timetable board / the turntable / a diesel shunter / the
        brass whistle / the platform clock""",
        """at the junction / in the marshalling yard / beyond the tunnel / on the viaduct / near the border station /
        beside the water tower / along the single track / outside the engine shed / between two halts / at the
        terminus""",
        """arrived a little late / gleamed in the sun / rattled on every curve / went back into service / hissed and
        shuddered / ran ahead of time / caused a short delay / wore out faster than expected / proved very popular /
        disappeared into the cutting""",
    ),
    _topic(  # cooking
        """the pastry chef / my grandmother / a party of students / the innkeeper / the night cook / two brothers from
        the coast / the head waiter / a curious guest / the school kitchen / an uncle with a sweet tooth""",
        "tasted / prepared / served / burnt / improved / seasoned / stirred / shared / carved / ordered",
        """the onion soup / a loaf of rye bread / the plum dumplings / a pot of lentils / the smoked trout / an apple
        tart / the saffron rice / the roast pumpkin / a jar of pickles / the fish stew / some warm chestnuts / the
        honey cake / a bowl of barley / the mushroom sauce""",
        """in the farmhouse kitchen / over a low fire / at the long table / beside the bread oven / in the back of the
        tavern / on the terrace / at the harvest dinner / near the open window / for the whole street / in a borrowed
        pan""",
        """tasted better the next day / needed a pinch of salt / came out too dry / filled the house with a sweet smell
        / disappeared within minutes / simmered for hours / turned golden at the edges / cooled on the sill / won over
        the doubters / kept well in the cellar""",
    ),
    _topic(  # crafts
        """the cabinet maker / a weaver from the islands / the potter / the bookbinder's apprentice / an elderly saddler
        / the evening class / a travelling tinker / the glass blower / two sisters with a loom / the blacksmith""",
        "finished / sanded / sold / mended / varnished / copied / designed / wrapped / examined / gave away",
        """the walnut cabinet / a set of spoons / the patchwork quilt / a leather satchel / the clay jug / the woven
        basket / an iron gate / the rocking chair / a birdhouse / the carved frame / the stained glass panel / a linen
        tablecloth / the toy boat / the copper kettle""",
        """in the workshop / at the craft fair / beside the kiln / on the long bench / under a bare lamp / in the attic
        studio / behind the shop / by the forge / at the folk museum / on the kitchen table""",
        """took the whole winter / fetched a good price / showed every tool mark / fitted perfectly / cracked along the
        grain / pleased the buyer / hung by the door for years / looked almost new / went to a cousin abroad / felt
        heavier than it seemed""",
    ),
    _topic(  # libraries and books
        """the librarian / a doctoral student / the reading circle / the second-hand dealer / a boy with thick glasses /
        the archivist / two translators / the evening porter / a novelist from the city / the bookshop owner""",
        "borrowed / catalogued / reread / quoted / shelved / recommended / translated / rebound / lost / dusted",
        """a history of maps / the bound newspapers / the travel journals / a thin book of poems / the parish registers /
        an atlas of birds / the detective novels / a dictionary of dialects / the letters of a botanist / some sheet
        music / the illustrated fables / a guide to mosses / the old encyclopedia / an essay on clouds""",
        """in the reading room / on the top shelf / near the card catalogue / beside the tall windows / at the branch
        library / in the basement stacks / between two atlases / behind the lending desk / in the quiet corner / at the
        book fair""",
        """smelled of dust and glue / drew new readers / went missing for years / lacked a title page / gave rise to a
        long debate / contained pencil notes / lay open on the desk / aged surprisingly well / passed from hand to hand
        / stood in the wrong place""",
    ),
    _topic(  # mountains and walking
        """the hut warden / a party of climbers / the shepherd / two botanists / the mountain guide / a lone walker / the
        trail crew / a geology class / the bus driver / the family with the donkey""",
        "crossed / followed / reached / marked / avoided / described / climbed / overlooked / cleared / rediscovered",
        """the upper meadow / a faint path / the stone shelter / the rope bridge / the ridge / a frozen tarn / the larch
        wood / the scree slope / a hidden spring / the summit cross / the old smugglers' trail / the glacier edge / a
        row of cairns / the alpine pasture""",
        """below the saddle / on the sunny side / above the gorge / near the border stone / past the last farm / beyond
        the waterfall / in the shadow of the cliff / along the ridge / at the head of the valley / within sight of the
        hut""",
        """took more than half a day / vanished in the fog / offered a fine view / proved steeper than on the map /
        dried out in summer / stayed in the shade / echoed with bells / lay under fresh snow / tempted many to linger /
        marked the limit of the forest""",
    ),
    _topic(  # music
        """the choir director / a self-taught fiddler / the brass band / the piano tuner / two cellists / the organist /
        a student of the flute / the dance orchestra / the stage hands / an old bandleader""",
        "rehearsed / played / tuned / recorded / hummed / arranged / applauded / transcribed / performed / practised",
        """the slow waltz / a lullaby from the north / the closing hymn / the overture / a set of variations / the second
        violin part / the harvest song / a forgotten march / the evening serenade / a duet for horns / the folk dances /
        the wedding polka / an unfinished quartet / the brass fanfare""",
        """in the town hall / at the summer festival / behind the curtain / in the church loft / on the open stage /
        around the piano / in a rented room / at the village dance / under the chestnut trees / in front of a small
        audience""",
        """sounded richer than ever / brought some listeners to tears / ended on a soft chord / needed another rehearsal
        / filled the hall / drifted through the open windows / followed an older tune / lost its tempo / stayed in the
        memory / received long applause""",
    ),
    _topic(  # birds and ponds
        """the bird wardens / a retired surveyor / the school nature club / the ferryman / two photographers / a boy with
        a notebook / the angling society / the canal ranger / an early riser / the owner of the hide""",
        "watched / counted / drew / fed / ringed / startled / protected / searched for / spotted / listened to",
        """the grey herons / a pair of grebes / the swallows / a family of otters / the reed warblers / some wild geese /
        the kingfisher / the marsh frogs / a barn owl / the mute swans / the dragonflies / a flock of lapwings / the
        water voles / the starlings""",
        """among the reeds / on the gravel island / by the sluice / over the flooded meadow / along the canal / near the
        old boathouse / in the alder wood / beside the mill pond / from the wooden tower / at the edge of the marsh""",
        """returned every year / took off all at once / kept to the far bank / made a remarkable noise / nested later
        than usual / ignored the visitors / moved on before the frost / drew photographers / found plenty of food /
        settled at nightfall""",
    ),
    _topic(  # houses and repairs
        """the plumber / a young couple / the roofer and his son / the landlady / the surveyor / an obliging neighbour /
        the previous owners / the carpenter / the chimney sweep / two painters""",
        "replaced / fixed / insulated / measured / plastered / removed / cleaned / looked into / patched / complained about",
        """the attic window / a dripping tap / the cellar stairs / the kitchen floor / the slate roof / the front door /
        an uneven wall / the gutters / the tiled stove / a loose banister / the shutters / the hall ceiling / the wood
        shed / the wiring""",
        """on the ground floor / above the porch / at the back of the house / beneath the stairs / in the spare room /
        along the north side / next to the chimney / in the old wing / over the garage / facing the yard""",
        """let in a draught / lasted another decade / cost a small fortune / needed only a new hinge / creaked at night /
        hid an older layer of tiles / dried within a week / made the room brighter / gave endless trouble / matched the
        rest of the house""",
    ),
    _topic(  # markets and trade
        """the cheese seller / a wholesaler from the plains / the market inspector / the flower girl / two rival grocers /
        the spice merchant / a bargain hunter / the auctioneer / the cart drivers / the owner of the tea stall""",
        "weighed / offered / bought / displayed / haggled over / packed / delivered / labelled / unwrapped / reserved",
        """a crate of oranges / the ripe cheeses / some coarse linen / the dried figs / a barrel of herring / the copper
        pans / a sack of flour / the cut flowers / a bolt of velvet / the candied peel / the walnuts / a basket of eggs /
        the hand-made soap / a box of candles""",
        """under the striped awning / beside the weighing house / at the third stall / in the covered arcade / near the
        pump / on an upturned crate / along the canal side / at the wholesale hall / in the shade of the arches / by the
        east gate""",
        """sold out by mid-morning / came from across the border / cost less than a year ago / went stale in the heat /
        attracted the wasps / changed hands quickly / found no buyer / kept for months / looked better than it tasted /
        arrived on the first cart""",
    ),
    _topic(  # winter sports and games
        """the skating club / the chess players / a team of curlers / the ski instructor / two cousins / the referee / the
        village eleven / a crowd of beginners / the rowing coach / the caretaker of the gym""",
        "won / organised / watched / postponed / discussed / trained for / lost / celebrated / filmed / cancelled",
        """the winter tournament / the relay race / a friendly match / the long final / the children's heats / the
        regatta / the charity run / an evening of cards / the sledge race / the chess league / the opening game / the
        bowling contest / a practice session / the cup tie""",
        """on the frozen lake / at the sports ground / in the gymnasium / along the towpath / in front of the clubhouse /
        on the lower slope / under the floodlights / at the indoor rink / behind the school / on the village green""",
        """ended in a draw / went on until dark / drew a modest crowd / started an hour late / was decided by a whisker /
        gave rise to much laughter / tired out the youngest / passed off without incident / raised some money for the
        club / lived up to its name""",
    ),
)
